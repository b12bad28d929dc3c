//! The Landlock domain: which paths the command may read and write, and nothing beyond its own processes.
//!
//! One ruleset, asked for at the highest ABI that the crate knows and enforced as far as the kernel can. The private
//! root already hides what is not granted; Landlock holds by itself when it does not, and it alone forbids writing to
//! /proc (another process's memory through /proc/PID/mem, for one).

use super::divide::{Entry, id_of};
use super::plan::{Plan, Rights};
use super::tier::Tier;
use ::landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope, make_bitflags,
};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// The newest ABI whose rights are asked for.
const NEWEST: ABI = ABI::V9;

/// Rights that others see to. The kernel works out both at every open, which makes each a seventh slower (measured on
/// Linux 6.18). Truncation: read-only mounts, or in tier `landlock` the filter and the supervisor. Device ioctls: there
/// are no devices but those of the private /dev, or in tier `landlock` the harmless ones.
const ELSEWHERE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Truncate | IoctlDev});

/// Enters the domain that `plan` describes. Paths that do not exist are left out: they can't be reached either.
pub fn enter(plan: &Plan) -> Result<(), Errno> {
    let abi = newest_of(plan.landlock_abi);
    let handled = AccessFs::from_all(abi) & !ELSEWHERE;
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    ruleset = ruleset.handle_access(handled).map_err(|_| Errno::INVAL)?;
    if plan.landlock_abi >= 6 {
        ruleset = ruleset.scope(Scope::from_all(abi)).map_err(|_| Errno::INVAL)?;
    }
    // Without a network namespace: no TCP but what the supervisor does.
    if plan.tier == Tier::Landlock && plan.landlock_abi >= 4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi)).map_err(|_| Errno::INVAL)?;
    }
    let mut ruleset = ruleset.create().map_err(|_| Errno::INVAL)?;
    let rules = plan.division.as_ref().map_or(&plan.landlock, |division| &division.rules);
    for (path, rights) in rules {
        let Ok(fd) = PathFd::new(path) else { continue };
        ruleset = ruleset
            .add_rule(PathBeneath::new(fd, access(*rights, path.is_dir()) & handled))
            .map_err(|_| Errno::INVAL)?;
    }
    for Entry { path, id, rights } in plan.division.iter().flat_map(|division| &division.entries) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) else { continue };
        let stat = rustix::fs::fstat(&fd)?;
        let directory = FileType::from_raw_mode(stat.st_mode).is_dir();
        if id_of(&stat) == *id {
            ruleset = ruleset
                .add_rule(PathBeneath::new(fd, access(*rights, directory) & handled))
                .map_err(|_| Errno::INVAL)?;
        }
    }
    ruleset.restrict_self().map(drop).map_err(|_| Errno::INVAL)
}

/// What is asked for on a kernel of ABI `own`: everything that the crate knows, unless an older one is to be tried.
fn newest_of(own: u32) -> ABI {
    match own {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        _ => NEWEST,
    }
}

/// The rights to make a name.
fn making() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{MakeReg | MakeDir | MakeSym | MakeFifo | MakeSock | MakeChar | MakeBlock})
}

fn access(rights: Rights, directory: bool) -> BitFlags<AccessFs> {
    let granted = match rights {
        Rights::List => make_bitflags!(AccessFs::{ReadDir}),
        Rights::Look => make_bitflags!(AccessFs::{ReadFile | ReadDir}),
        Rights::Read => AccessFs::from_read(NEWEST),
        Rights::Write => {
            AccessFs::from_all(NEWEST) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
        }
        Rights::Guarded => access(Rights::Write, true) & !making(),
        Rights::Device => make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate}),
        Rights::Terminal => make_bitflags!(AccessFs::{ReadFile | WriteFile | ReadDir | IoctlDev}),
    };
    if directory { granted } else { granted & AccessFs::from_file(NEWEST) }
}

/// What the running kernel's Landlock lacks of what jess asks for, in words.
pub fn rights_lost(abi: u32) -> Vec<&'static str> {
    [
        (2, "renaming and linking across directories is not controlled"),
        (6, "signals and abstract sockets are bounded by the namespaces alone"),
    ]
    .into_iter()
    .filter(|(since, _)| abi < *since)
    .map(|(_, lost)| lost)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_is_named_by_what_it_lacks() {
        assert!(rights_lost(7).is_empty());
        assert_eq!(rights_lost(5).len(), 1);
        assert_eq!(rights_lost(0).len(), 2);
    }

    #[test]
    fn guarded_access_makes_nothing_and_changes_what_is_there() {
        let guarded = access(Rights::Guarded, true);
        assert!((guarded & making()).is_empty());
        assert!(guarded.contains(AccessFs::WriteFile) && guarded.contains(AccessFs::RemoveFile));
    }

    #[test]
    fn write_access_makes_no_device_nodes() {
        let write = access(Rights::Write, true);
        assert!(!write.contains(AccessFs::MakeChar) && !write.contains(AccessFs::MakeBlock));
        assert!(write.contains(AccessFs::MakeReg) && write.contains(AccessFs::Refer));
    }
}
