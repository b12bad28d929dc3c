//! The profiles that come with jess.

/// A profile that comes with jess.
#[derive(Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in a line.
    pub summary: &'static str,
    /// What it says, as a profile file would.
    pub text: &'static str,
}

/// All of them, the default first.
pub const BUILTIN: [Builtin; 6] = [
    Builtin { name: "full", summary: "every layer, the usual limits (the default)", text: "" },
    Builtin {
        name: "strict",
        summary: "tier full or nothing, with smaller limits, no input, and a /proc of processes alone",
        text: "extends = 'full'\n\
               require = 'full'\n\
               stdin = 'null'\n\
               bare-proc = true\n\
               [limits]\n\
               processes = 256\n\
               open-files = 1024\n\
               file = '1G'\n\
               cpu = 600\n\
               scratch = '512M'\n",
    },
    Builtin {
        name: "target_run",
        summary: "for a program under test that serves others inside: local sockets, also of AF_UNIX",
        text: "extends = 'full'\nunix-sockets = true\n",
    },
    Builtin {
        name: "debug",
        summary: "as full, and the command may trace its own processes (gdb, strace)",
        text: "extends = 'full'\nptrace = true\n",
    },
    Builtin {
        name: "network-only",
        summary: "your own files and home as they are; the network, other processes and the kernel's surface closed",
        text: "extends = 'full'\nhost-files = true\n",
    },
    Builtin {
        name: "none",
        summary: "no isolation: the environment, the limits and the end of all processes remain",
        text: "unconfined = true\n",
    },
];
