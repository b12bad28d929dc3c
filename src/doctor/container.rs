//! Containers: whether this is one, and the least that it must allow.

use super::{Check, State, read};

pub fn checks() -> Vec<Check> {
    vec![describe(kind())]
}

/// The kind of container that this process runs in, as far as it shows.
fn kind() -> Option<&'static str> {
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return Some("kubernetes");
    }
    if std::path::Path::new("/run/.containerenv").exists() {
        return Some("podman");
    }
    if std::path::Path::new("/.dockerenv").exists() {
        return Some("docker");
    }
    match read("/run/systemd/container") {
        Some(name) if !name.is_empty() => Some("other"),
        _ => None,
    }
}

fn describe(kind: Option<&str>) -> Check {
    let lost = "tier full, unless the container allows user namespaces, mounts and a /proc of one's own";
    let remedy = match kind {
        None => return Check::ok("container", "none seen"),
        Some("kubernetes") => {
            "in the pod: `hostUsers: false`; in securityContext: `procMount: Unmasked`, `seccompProfile: {type: Unconfined}` \
             or one that allows clone, unshare, mount, umount2, pivot_root, open_tree, move_mount and mount_setattr, \
             `appArmorProfile: {type: Unconfined}`. No capability and no privileged mode is needed"
        }
        Some("podman") => {
            "podman run --security-opt unmask=ALL --security-opt seccomp=unconfined (or a profile that also allows clone \
             and unshare with namespaces, mount, umount2, pivot_root, open_tree, move_mount and mount_setattr). No \
             capability and no --privileged is needed"
        }
        Some(_) => {
            "docker run --security-opt systempaths=unconfined --security-opt apparmor=unconfined --security-opt \
             seccomp=unconfined (or a profile that also allows clone and unshare with namespaces, mount, umount2, \
             pivot_root, open_tree, move_mount and mount_setattr). No capability and no --privileged is needed"
        }
    };
    Check::not("container", State::Limited, kind.unwrap_or_default()).losing([lost]).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_container_gets_its_own_settings() {
        for (kind, word) in [("kubernetes", "hostUsers"), ("podman", "podman run"), ("docker", "docker run")]
        {
            assert!(describe(Some(kind)).remedy.unwrap().contains(word));
        }
        assert_eq!(describe(None).state, State::Ok);
    }
}
