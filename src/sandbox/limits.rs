//! Resource limits of the command.

use super::spec::Limits;
use super::tier::Tier;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Sets `limits` on this process. A limit above the inherited hard limit becomes that; core dumps are always off. Without
/// a user namespace RLIMIT_NPROC would count all processes of the user on the host: there [`super::crowd`] counts.
pub fn apply(limits: &Limits, tier: Tier) -> Result<(), Errno> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    for (resource, value) in [
        (Resource::Fsize, limits.file_bytes),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Nofile, limits.open_files),
        (Resource::As, limits.address_space),
        (Resource::Nproc, limits.processes.filter(|_| tier == Tier::Full)),
    ] {
        let Some(value) = value else { continue };
        let hard = getrlimit(resource).maximum;
        let at_most = |value: u64| hard.map_or(value, |hard| value.min(hard));
        // At the soft limit of processor time the kernel sends SIGXCPU, which says why; at the hard one it kills.
        let maximum = if matches!(resource, Resource::Cpu) { value.saturating_add(1) } else { value };
        setrlimit(resource, Rlimit { current: Some(at_most(value)), maximum: Some(at_most(maximum)) })?;
    }
    Ok(())
}
