//! User namespaces: what switches them off, and how to switch them on.

use super::{Check, State, read};

pub fn checks() -> Vec<Check> {
    let mut checks = vec![maximum(read("/proc/sys/user/max_user_namespaces").as_deref())];
    checks.extend(apparmor(read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref()));
    checks.extend(debian(read("/proc/sys/kernel/unprivileged_userns_clone").as_deref()));
    checks
}

const LOST: &str = "tier full, for anybody but root";

fn maximum(value: Option<&str>) -> Check {
    match value {
        None => Check::not("max-user-namespaces", State::Missing, "the kernel has no user namespaces")
            .losing(["tier full"])
            .remedy("use a kernel with CONFIG_USER_NS"),
        Some("0") => Check::not("max-user-namespaces", State::Missing, "user.max_user_namespaces = 0")
            .losing(["tier full"])
            .remedy("sysctl -w user.max_user_namespaces=15000 (as root; also in /etc/sysctl.d/ to keep it)"),
        Some(value) => Check::ok("max-user-namespaces", format!("user.max_user_namespaces = {value}")),
    }
}

fn apparmor(value: Option<&str>) -> Option<Check> {
    Some(match value? {
        "1" => Check::not("apparmor", State::Limited, "kernel.apparmor_restrict_unprivileged_userns = 1")
            .losing([LOST.to_owned() + ", unless a profile allows it"])
            .remedy(
                "jess doctor --apparmor-profile > /etc/apparmor.d/jess && apparmor_parser -r /etc/apparmor.d/jess (as root); \
                 or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, for every program",
            ),
        value => Check::ok("apparmor", format!("kernel.apparmor_restrict_unprivileged_userns = {value}")),
    })
}

fn debian(value: Option<&str>) -> Option<Check> {
    Some(match value? {
        "0" => Check::not("unprivileged-clone", State::Missing, "kernel.unprivileged_userns_clone = 0")
            .losing([LOST])
            .remedy("sysctl -w kernel.unprivileged_userns_clone=1 (as root)"),
        value => Check::ok("unprivileged-clone", format!("kernel.unprivileged_userns_clone = {value}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_switch_is_named_with_the_way_to_turn_it() {
        for (check, sysctl) in [
            (maximum(Some("0")), "user.max_user_namespaces="),
            (apparmor(Some("1")).unwrap(), "apparmor_parser"),
            (debian(Some("0")).unwrap(), "unprivileged_userns_clone=1"),
        ] {
            assert_ne!(check.state, State::Ok);
            assert!(check.remedy.unwrap().contains(sysctl));
        }
        assert_eq!(maximum(Some("100")).state, State::Ok);
        assert!(apparmor(None).is_none() && debian(None).is_none(), "what is not there is no check");
    }
}
