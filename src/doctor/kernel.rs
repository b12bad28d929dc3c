//! The kernel: its version, Landlock, seccomp, and settings that matter to a run.

use super::{Check, State, read};
use crate::sandbox;

/// The newest Landlock ABI that jess asks for.
const NEWEST_ABI: u32 = 9;

pub fn checks() -> Vec<Check> {
    vec![version(), landlock(sandbox::landlock_abi(), lsms().as_deref()), seccomp(), ptrace_scope()]
}

fn version() -> Check {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    match parse_version(&release) {
        Some(version) if version >= (5, 13) => Check::ok("version", format!("Linux {release}")),
        _ => Check::not("version", State::Limited, format!("Linux {release}"))
            .losing(["Linux 5.12 is needed for the private root, 5.13 for Landlock"])
            .remedy("use a newer kernel"),
    }
}

fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn lsms() -> Option<String> {
    read("/sys/kernel/security/lsm")
}

fn landlock(abi: u32, lsms: Option<&str>) -> Check {
    let lost = sandbox::landlock_rights_lost(abi);
    if abi == 0 {
        let off = lsms.is_some_and(|active| !active.split(',').any(|lsm| lsm == "landlock"));
        let remedy = if off {
            "Landlock is built in but not active: add `landlock` to the kernel parameter `lsm=`".to_owned()
        } else {
            "use a kernel with CONFIG_SECURITY_LANDLOCK (Linux 5.13 or later); in a container allow the \
             landlock_* calls in the seccomp profile"
                .to_owned()
        };
        return Check::not("landlock", State::Missing, "not there")
            .losing(["tier landlock", "writes to /proc are stopped by nothing but the kernel's own checks"])
            .losing(lost)
            .remedy(remedy);
    }
    let found = format!("ABI {abi} (jess asks for up to {NEWEST_ABI})");
    if lost.is_empty() {
        Check::ok("landlock", found)
    } else {
        Check::not("landlock", State::Limited, found).losing(lost).remedy("use a newer kernel")
    }
}

fn seccomp() -> Check {
    match read("/proc/sys/kernel/seccomp/actions_avail") {
        None => Check::not("seccomp", State::Missing, "/proc/sys/kernel/seccomp is not there")
            .losing(["every run is refused"])
            .remedy("use a kernel with CONFIG_SECCOMP_FILTER"),
        Some(actions) if actions.split_whitespace().any(|a| a == "user_notif") => {
            Check::ok("seccomp", format!("filters, with {actions}"))
        }
        Some(actions) => Check::not("seccomp", State::Limited, format!("filters, with {actions}"))
            .losing(["supervised calls: tier landlock, and denied paths that do not exist yet"])
            .remedy("use Linux 5.5 or later"),
    }
}

fn ptrace_scope() -> Check {
    match read("/proc/sys/kernel/yama/ptrace_scope").as_deref() {
        None => Check::ok("ptrace-scope", "Yama is off: a run's own tracing is bounded by its namespaces"),
        Some(scope @ ("0" | "1")) => Check::ok("ptrace-scope", format!("Yama at {scope}")),
        Some(scope) => Check::not("ptrace-scope", State::Limited, format!("Yama at {scope}"))
            .losing(["profile debug can't trace"])
            .remedy("sysctl -w kernel.yama.ptrace_scope=1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_distributions_are_understood() {
        assert_eq!(parse_version("6.8.0-45-generic"), Some((6, 8)));
        assert_eq!(parse_version("5.10.0"), Some((5, 10)));
        assert_eq!(parse_version("strange"), None);
    }

    #[test]
    fn each_missing_abi_costs_something_that_is_named() {
        for abi in 1..NEWEST_ABI {
            let (now, next) = (landlock(abi, None), landlock(abi + 1, None));
            assert!(now.lost.len() >= next.lost.len(), "ABI {abi}");
        }
        assert_eq!(landlock(3, None).state, State::Limited);
        assert_eq!(landlock(NEWEST_ABI, None).state, State::Ok);
    }

    #[test]
    fn a_landlock_that_is_switched_off_is_told_from_one_that_is_not_there() {
        let off = landlock(0, Some("lockdown,capability,apparmor"));
        assert!(off.remedy.is_some_and(|r| r.contains("lsm=")) && off.state == State::Missing);
        assert!(landlock(0, None).remedy.is_some_and(|r| r.contains("CONFIG_SECURITY_LANDLOCK")));
    }
}
