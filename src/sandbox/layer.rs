//! The layers of the sandbox, by name: what the report lists and what the drill proves one by one.

use serde::{Serialize, Serializer};

/// One mechanism that can be shown to stop something by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Layer {
    /// A private root: nothing of the host but read-only system directories and the grants.
    Mounts,
    /// Its own process tree, with jess as PID 1; it dies as a whole.
    PidNamespace,
    /// An empty network namespace: its own loopback and nothing else.
    NetNamespace,
    /// Its own System V IPC and POSIX message queues.
    IpcNamespace,
    /// Its own host name, and its own view of the cgroup tree: nothing says which machine this is.
    HostIdentity,
    /// No capability, no way to gain one.
    Capabilities,
    /// An allowlist of environment variables.
    Environment,
    /// Resource limits.
    Limits,
    /// Landlock: reads and writes by path, signals and abstract sockets by scope.
    Landlock,
    /// A seccomp filter over the kernel's surface.
    Seccomp,
}

impl Layer {
    /// Every layer, in the order in which they engage.
    pub const ALL: [Layer; 10] = [
        Layer::Environment,
        Layer::PidNamespace,
        Layer::NetNamespace,
        Layer::IpcNamespace,
        Layer::HostIdentity,
        Layer::Mounts,
        Layer::Capabilities,
        Layer::Limits,
        Layer::Landlock,
        Layer::Seccomp,
    ];

    /// The name in reports and on the drill's command line.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Mounts => "mounts",
            Layer::PidNamespace => "pid-namespace",
            Layer::NetNamespace => "net-namespace",
            Layer::IpcNamespace => "ipc-namespace",
            Layer::HostIdentity => "host-identity",
            Layer::Capabilities => "capabilities",
            Layer::Environment => "environment",
            Layer::Limits => "limits",
            Layer::Landlock => "landlock",
            Layer::Seccomp => "seccomp",
        }
    }
}

impl Serialize for Layer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The set of layers that are left off, to prove that each is load-bearing.
///
/// Everything that runs untrusted code passes [`Weakened::none`]. Only `jess drill` can make another value: the
/// constructor is private to the crate and its one caller is the drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weakened(u16);

impl Weakened {
    /// Every layer engages.
    pub const fn none() -> Self {
        Weakened(0)
    }

    /// All but `layer` engage. For the drill alone.
    pub(crate) const fn without(layer: Layer) -> Self {
        Weakened(1 << layer as u8)
    }

    /// Nothing engages but what bounds a run that is not isolated ([`super::Spec::unconfined`]).
    pub(super) const fn unconfined() -> Self {
        let all = (1 << Layer::ALL.len()) - 1;
        Weakened(all & !(1 << Layer::Environment as u8) & !(1 << Layer::Limits as u8))
    }

    /// Whether `layer` is to engage.
    pub(crate) const fn keeps(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u8) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_one_layer_off_keeps_the_others() {
        for off in Layer::ALL {
            let weakened = Weakened::without(off);
            for layer in Layer::ALL {
                assert_eq!(weakened.keeps(layer), layer != off, "{} / {}", off.name(), layer.name());
            }
        }
    }
}
