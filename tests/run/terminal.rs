//! `--tty`: a terminal of the command's own, used as a person would.

use crate::support::{JESS, Ran};
use std::process::Command;

/// Types `script` at a terminal of 33 by 99 that runs `command` (see `terminal.py`), and gives what was seen.
fn at_terminal(script: &str, command: &[&str]) -> String {
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/terminal.py");
    let ran = Ran::of(Command::new("/usr/bin/python3").args([driver, script]).args(command).current_dir("/"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout
}

fn jess(options: &[&str], script: &str) -> Vec<String> {
    let line = [&[JESS, "run", "--timeout", "60", "--tty"], options, &["--", "bash", "-c", script]].concat();
    line.into_iter().map(str::to_owned).collect()
}

fn at_jess(script: &str, options: &[&str], command: &str) -> String {
    let line = jess(options, command);
    at_terminal(script, &line.iter().map(String::as_str).collect::<Vec<_>>())
}

const TIERS: [&[&str]; 2] = [&["--tier", "full"], &["--tier", "landlock"]];

#[test]
fn the_command_has_a_terminal_of_its_own_in_the_operator_s_size() {
    for tier in TIERS {
        let seen =
            at_jess("end", tier, "test -t 0 && test -t 1 && test -t 2 && echo is a terminal; stty size");
        assert!(seen.contains("is a terminal") && seen.contains("33 99"), "{tier:?}: {seen}");
    }
    let seen = at_jess("end", TIERS[0], "tty; echo through > /dev/tty; stty size < /dev/tty");
    assert!(seen.contains("/dev/pts/0") && seen.contains("through") && seen.contains("33 99"), "{seen}");
    let without = at_terminal("end", &[JESS, "run", "--", "sh", "-c", "test -t 0 || echo no terminal"]);
    assert!(without.contains("no terminal"), "control: {without}");
}

#[test]
fn what_is_typed_arrives_and_control_d_ends_it() {
    for tier in TIERS {
        let seen = at_jess("wait ready\ntype hello\\r\ntype \\x04\nend", tier, "echo ready; wc -l; exit 5");
        assert!(seen.contains("1\r\n") && seen.contains("status 5"), "{tier:?}: {seen}");
    }
}

#[test]
fn control_c_interrupts_the_command_and_not_jess() {
    for tier in TIERS {
        let command = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.1; done";
        let seen = at_jess("wait ready\ntype \\x03\nend", tier, command);
        assert!(seen.contains("caught") && seen.contains("status 3"), "{tier:?}: {seen}");
        let seen = at_jess("wait ready\ntype \\x03\nend", tier, "echo ready; exec sleep 50");
        assert!(seen.contains("status 130"), "{tier:?}: {seen}");
    }
}

#[test]
fn a_new_size_reaches_the_command() {
    for tier in TIERS {
        let command = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.1; done";
        let seen = at_jess("wait ready\nsize 44 111\nend", tier, command);
        assert!(seen.contains("44 111"), "{tier:?}: {seen}");
    }
}

#[test]
fn control_z_stops_the_run_and_fg_goes_on_with_it() {
    for tier in TIERS {
        let line = jess(tier, r#"echo re""ady; read line; echo got $line"#);
        let line: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "wait prompt:\ntype {}\\r\nwait ready\ntype \\x1a\nwait Stopped\nwait prompt:\nmodes\n\
             type echo shell $((6*7))\\r\nwait shell 42\ntype fg\\r\nwait bash\ntype words\\r\nwait got words\n\
             wait prompt:\ntype exit 9\\r\nend",
            line.join(" ")
        );
        let seen = at_terminal(&script, &["env", "PS1=prompt:", "bash", "--norc", "--noprofile", "-i"]);
        assert!(seen.contains("status 9"), "{tier:?}: {seen}");
    }
}

#[test]
fn a_shell_inside_has_job_control() {
    for tier in TIERS {
        let script = "wait inner:\ntype sh -c 'echo re\"\"ady; exec sleep 50'\\r\nwait ready\ntype \\x1a\nwait Stopped\nwait inner:\n\
                      type kill -KILL %1; wait; echo kil\"\"led\\r\nwait killed\ntype exec sh -c 'exit 4'\\r\nend";
        let line = [
            &[JESS, "run", "--timeout", "60", "--tty", "--env", "PS1=inner:"],
            tier,
            &["--", "bash", "--norc", "--noprofile", "-i"],
        ];
        let seen = at_terminal(script, &line.concat());
        assert!(seen.contains("status 4") && !seen.contains("no job control"), "{tier:?}: {seen}");
    }
}

#[test]
fn input_that_is_no_terminal_still_gives_the_command_one() {
    let mut command = Command::new("bash");
    let script = format!(
        "printf 'a\\nb\\n' | {JESS} run --tty -- sh -c 'test -t 0 && stty -echo && stty size && wc -l'"
    );
    let ran = Ran::of(command.args(["-c", &script]).current_dir("/"));
    // What comes before the command turned it off is echoed.
    let words = ran.ok().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.ends_with("24 80 2"), "{words}");
}
