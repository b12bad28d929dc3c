//! Profiles: named sets of settings, and how they add up to a [`Spec`].
//!
//! A profile can say everything that the flags of `jess run` can. It builds on others by `extends`; the flags of a
//! command line are one more profile on top of all. Lists add up, parents first; a single value replaces the parents'.
//!
//! | file | concern |
//! |---|---|
//! | `mod` | what a profile says, and the spec it makes |
//! | `builtin` | the profiles that come with jess |
//! | `load` | names, files, `extends` |
//! | `value` | sizes, times, and values that may also be lists |

mod builtin;
mod load;
mod value;

pub use builtin::{BUILTIN, Builtin};
pub use load::{DEPTH_AT_MOST, Error, FILE_AT_MOST, Found, LoadedProfile, load};
pub use value::{Bound, Cpus, OneOrMany, Seconds, Size};

use super::spec::{Access, Grant, Limits, Spec, Stdin, Surface, Watch};
use super::{Tier, env, toolchain};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What a profile says. Nothing is what is not said.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Profile {
    /// Profiles that this one builds on, by name or file.
    #[serde(skip_serializing_if = "OneOrMany::is_empty")]
    pub extends: OneOrMany<String>,
    /// Paths shown read-only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ro: Vec<PathBuf>,
    /// Paths shown writable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rw: Vec<PathBuf>,
    /// Paths shown read-only if they exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ro_try: Vec<PathBuf>,
    /// Paths shown writable if they exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rw_try: Vec<PathBuf>,
    /// Symbolic links that are shown themselves; what they lead to is shown only if it is granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<PathBuf>,
    /// Paths below a grant that are kept out of reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<PathBuf>,
    /// Variables: `NAME` passes the caller's, `NAME=VALUE` sets one.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "value::lossy",
        deserialize_with = "value::strings"
    )]
    pub env: Vec<OsString>,
    /// Toolchains in the operator's home that are shown read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// Working directory inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Where the report of the run is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<PathBuf>,
    /// Wall-clock limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
    /// Time between TERM and KILL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Seconds>,
    /// What the command reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Input>,
    /// Whether the command gets a terminal of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tty: Option<bool>,
    /// Whether AF_UNIX sockets may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unix_sockets: Option<bool>,
    /// Whether the command may trace its own processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ptrace: Option<bool>,
    /// Whether /proc shows nothing but processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bare_proc: Option<bool>,
    /// Whether the command runs without isolation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconfined: Option<bool>,
    /// Whether the command can use every file that the caller can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_files: Option<bool>,
    /// The weakest tier that will do; `landlock` if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Tier>,
    /// This tier and no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Whether every refusal is watched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<bool>,
    /// The control group below which the run's own is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<PathBuf>,
    /// The newest Landlock ABI that is used, for tests.
    #[serde(skip)]
    pub landlock_abi: Option<u32>,
    /// Limits.
    #[serde(skip_serializing_if = "LimitSettings::is_empty")]
    pub limits: LimitSettings,
}

/// What the command reads as standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// What jess reads.
    Inherit,
    /// Nothing.
    Null,
}

/// Toolchains to find: all that are known, none, or those named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Tools {
    /// All that are found (`true`), or none.
    All(bool),
    /// These; one that is not found is an error.
    Named(Vec<String>),
}

/// Limits that a profile sets; see [`Limits`] for what each means.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LimitSettings {
    /// [`Limits::file_bytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Bound<Size>>,
    /// [`Limits::cpu_seconds`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Bound<Seconds>>,
    /// [`Limits::processes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Bound<u64>>,
    /// [`Limits::open_files`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<Bound<u64>>,
    /// [`Limits::address_space`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_space: Option<Bound<Size>>,
    /// [`Limits::memory_bytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bound<Size>>,
    /// [`Limits::cpu_percent`], in processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Bound<Cpus>>,
    /// [`Limits::scratch_bytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Size>,
    /// [`Limits::output_bytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Bound<Size>>,
}

impl LimitSettings {
    fn is_empty(&self) -> bool {
        *self == LimitSettings::default()
    }

    fn over(self, below: LimitSettings) -> LimitSettings {
        LimitSettings {
            file: self.file.or(below.file),
            cpu: self.cpu.or(below.cpu),
            processes: self.processes.or(below.processes),
            open_files: self.open_files.or(below.open_files),
            address_space: self.address_space.or(below.address_space),
            memory: self.memory.or(below.memory),
            cpus: self.cpus.or(below.cpus),
            scratch: self.scratch.or(below.scratch),
            output: self.output.or(below.output),
        }
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        let size = |size: &Size| size.0;
        if let Some(bound) = &self.file {
            limits.file_bytes = bound.as_ref().map(size);
        }
        if let Some(bound) = &self.cpu {
            limits.cpu_seconds = bound.as_ref().map(|s| s.0.as_secs().max(1));
        }
        if let Some(bound) = &self.processes {
            limits.processes = bound.as_ref().copied();
        }
        if let Some(bound) = &self.open_files {
            limits.open_files = bound.as_ref().copied();
        }
        if let Some(bound) = &self.address_space {
            limits.address_space = bound.as_ref().map(size);
        }
        if let Some(bound) = &self.memory {
            limits.memory_bytes = bound.as_ref().map(size);
        }
        if let Some(bound) = &self.cpus {
            limits.cpu_percent = bound.as_ref().map(|cpus| cpus.percent);
        }
        if let Some(size) = self.scratch {
            limits.scratch_bytes = size.0;
        }
        if let Some(bound) = &self.output {
            limits.output_bytes = bound.as_ref().map_or(u64::MAX, size);
        }
        limits
    }
}

impl Profile {
    /// This profile's settings on top of those of `below`. `extends` is the caller's to resolve.
    pub fn over(self, below: Profile) -> Profile {
        fn add<T>(mut below: Vec<T>, above: Vec<T>) -> Vec<T> {
            below.extend(above);
            below
        }
        Profile {
            extends: OneOrMany::default(),
            ro: add(below.ro, self.ro),
            rw: add(below.rw, self.rw),
            ro_try: add(below.ro_try, self.ro_try),
            rw_try: add(below.rw_try, self.rw_try),
            links: add(below.links, self.links),
            deny: add(below.deny, self.deny),
            env: add(below.env, self.env),
            tools: self.tools.or(below.tools),
            cwd: self.cwd.or(below.cwd),
            report: self.report.or(below.report),
            timeout: self.timeout.or(below.timeout),
            grace: self.grace.or(below.grace),
            stdin: self.stdin.or(below.stdin),
            tty: self.tty.or(below.tty),
            unix_sockets: self.unix_sockets.or(below.unix_sockets),
            ptrace: self.ptrace.or(below.ptrace),
            bare_proc: self.bare_proc.or(below.bare_proc),
            unconfined: self.unconfined.or(below.unconfined),
            host_files: self.host_files.or(below.host_files),
            require: self.require.or(below.require),
            tier: self.tier.or(below.tier),
            explain: self.explain.or(below.explain),
            cgroup: self.cgroup.or(below.cgroup),
            landlock_abi: self.landlock_abi.or(below.landlock_abi),
            limits: self.limits.over(below.limits),
        }
    }

    /// The limits that it sets, on top of the usual ones.
    pub fn limits(&self) -> Limits {
        self.limits.limits()
    }

    /// Makes every path absolute: `~` is `home`, and what is relative lies below `base`.
    pub(super) fn place_paths(&mut self, base: &Path, home: Option<&Path>) {
        let place = |path: &mut PathBuf| {
            *path = match (path.strip_prefix("~"), home) {
                // Joining nothing would leave a slash at the end.
                (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_owned(),
                (Ok(rest), Some(home)) => home.join(rest),
                _ => base.join(&path),
            };
        };
        let lists =
            [&mut self.ro, &mut self.rw, &mut self.ro_try, &mut self.rw_try, &mut self.links, &mut self.deny];
        for list in lists {
            list.iter_mut().for_each(place);
        }
        for path in [&mut self.cwd, &mut self.report, &mut self.cgroup].into_iter().flatten() {
            place(path);
        }
    }

    /// The spec for `argv` under these settings. Without [`Profile::cwd`] the command starts in `here` if that is
    /// there inside. Grants to try are looked up now.
    ///
    /// # Errors
    /// A toolchain that is named and not found.
    pub fn spec(&self, argv: Vec<OsString>, here: Option<&Path>) -> Result<Spec, super::Error> {
        let unconfined = self.unconfined.unwrap_or(false);
        if unconfined && (self.require.is_some() || self.tier.is_some()) {
            return Err(super::Error::Contradiction);
        }
        let host_files = self.host_files.unwrap_or(false);
        let mut env = env::base_of_process();
        if let (true, Some(home)) = (host_files, std::env::var_os("HOME")) {
            env::set(&mut env, "HOME", home);
        }
        if !unconfined && self.ptrace != Some(true) {
            // The leak checker traces its own process, and ends a program that it can't trace.
            env::set(&mut env, "LSAN_OPTIONS", "detect_leaks=0");
        }
        let mut grants = Vec::new();
        for found in toolchain::find(self.tools.as_ref())? {
            found.apply(&mut grants, &mut env);
        }
        for (paths, access, must_exist) in [
            (&self.ro_try, Access::ReadOnly, false),
            (&self.ro, Access::ReadOnly, true),
            (&self.rw_try, Access::ReadWrite, false),
            (&self.rw, Access::ReadWrite, true),
        ] {
            let paths = paths.iter().filter(|path| must_exist || exists(path));
            grants.extend(paths.map(|path| Grant { path: path.clone(), access }));
        }
        for variable in &self.env {
            set_variable(&mut env, variable);
        }
        let cwd = match &self.cwd {
            Some(dir) => Some(std::path::absolute(dir).unwrap_or_else(|_| dir.clone())),
            None => {
                let leads = |dir: &Path| self.links.iter().any(|link| link.starts_with(dir));
                let inside = |dir: &Path| unconfined || host_files || is_inside(dir, &grants) || leads(dir);
                here.filter(|dir| inside(dir)).map(Path::to_path_buf)
            }
        };
        Ok(Spec {
            argv,
            cwd,
            env,
            grants,
            links: self.links.clone(),
            deny: self.deny.clone(),
            unconfined,
            host_files,
            surface: Surface {
                unix_sockets: self.unix_sockets.unwrap_or(false),
                ptrace: self.ptrace.unwrap_or(false),
                bare_proc: self.bare_proc.unwrap_or(false),
            },
            tty: self.tty.unwrap_or(false),
            limits: self.limits.limits(),
            stdin: match self.stdin {
                Some(Input::Null) => Stdin::Null,
                _ => Stdin::Copied,
            },
            timeout: self.timeout.map(|s| s.0),
            grace: self.grace.map(|s| s.0),
            require: self.require.unwrap_or(Tier::Landlock),
            tier: self.tier,
            watch: if self.explain == Some(true) { Watch::Refusals } else { Watch::Decisions },
            cgroup: self.cgroup.clone(),
            landlock_abi: self.landlock_abi,
            ..Spec::default()
        })
    }
}

/// Whether something is at `path`. What can't be examined for another reason counts as there, so that the grant fails
/// with that reason.
fn exists(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    !matches!(path.metadata(), Err(error) if matches!(error.kind(), NotFound | NotADirectory))
}

/// Whether `dir` is there inside: in a grant, or on the way to one (so that relative arguments mean what they mean here).
fn is_inside(dir: &Path, grants: &[Grant]) -> bool {
    let mut granted = grants.iter().filter_map(|g| g.path.canonicalize().ok());
    granted.any(|granted| dir.starts_with(&granted) || granted.starts_with(dir))
}

/// `K=V` sets, `K` passes the caller's value if there is one.
fn set_variable(environment: &mut Vec<(OsString, OsString)>, variable: &OsString) {
    use std::os::unix::ffi::OsStrExt;
    let bytes = variable.as_bytes();
    match bytes.iter().position(|b| *b == b'=') {
        Some(at) => {
            let (name, value) = bytes.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            env::set(environment, OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
        None => {
            if let Some(value) = std::env::var_os(variable) {
                env::set(environment, variable, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Profile {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn lists_add_up_and_single_values_replace() {
        let below = parse("ro = ['/a']\nenv = ['A=1']\ntimeout = 5\n[limits]\nprocesses = 9\nfile = '1G'");
        let above = parse("ro = ['/b']\ntimeout = 7\n[limits]\nprocesses = 'none'");
        let both = above.over(below);
        assert_eq!(both.ro, [PathBuf::from("/a"), "/b".into()]);
        assert_eq!(both.timeout.map(|t| t.0.as_secs()), Some(7));
        let limits = both.limits.limits();
        assert_eq!((limits.processes, limits.file_bytes), (None, Some(1 << 30)));
    }

    #[test]
    fn a_profile_survives_being_written_and_read() {
        let text = "extends = ['strict']\nrw = ['/w']\ndeny = ['/w/.env']\nenv = ['A=1', 'B']\n\
                    tools = ['go']\ntimeout = 1.5\nptrace = true\n[limits]\noutput = 'none'\ncpu = 60";
        let profile = parse(text);
        let written = toml::to_string(&profile).unwrap();
        assert_eq!(parse(&written), profile, "{written}");
    }

    #[test]
    fn paths_are_relative_to_the_file_and_home_is_the_operator_s() {
        let mut profile = parse("ro = ['a', '~/b', '/c', '~']");
        profile.place_paths(Path::new("/base"), Some(Path::new("/home/u")));
        let paths: Vec<_> = profile.ro.iter().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(paths, ["/base/a", "/home/u/b", "/c", "/home/u"]);
    }

    #[test]
    fn a_grant_to_try_is_left_out_only_where_nothing_is() {
        let dir = tempfile::tempdir().unwrap();
        let profile = Profile {
            ro_try: vec![dir.path().into(), dir.path().join("missing"), "/dev/null/x".into()],
            ..Profile::default()
        };
        let spec = profile.spec(vec!["true".into()], None).unwrap();
        assert_eq!(spec.grants, [Grant { path: dir.path().into(), access: Access::ReadOnly }]);
    }
}
