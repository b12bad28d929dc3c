//! Resource limits of the command.

use super::spec::Limits;
use super::tier::Tier;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Room for what else the user of a run of tier `landlock` starts meanwhile, threads.
const MEANWHILE: u64 = 512;

/// Sets `limits` on this process. A limit above the inherited hard limit becomes that; core dumps are always off. Without
/// a user namespace RLIMIT_NPROC counts all processes of the user on the host: there [`super::crowd`] counts, and the
/// kernel's limit is far beyond, where looking would be outrun. It does not bind root.
pub fn apply(limits: &Limits, tier: Tier) -> Result<(), Errno> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    for (resource, value) in [
        (Resource::Fsize, limits.file_bytes),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Nofile, limits.open_files),
        (Resource::As, limits.address_space),
        (Resource::Nproc, processes(limits.processes, tier)),
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

/// What RLIMIT_NPROC is set to, for `limit` processes of the run.
fn processes(limit: Option<u64>, tier: Tier) -> Option<u64> {
    match tier {
        Tier::Full => limit,
        // All of the host's threads are more than the user's.
        Tier::Landlock => {
            let others = super::crowd::threads_of_the_host()?;
            Some(others.saturating_add(limit?.saturating_mul(3) / 2).saturating_add(MEANWHILE))
        }
    }
}
