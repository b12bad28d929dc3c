//! What an attempt is.

use crate::plant::Plant;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitStatus;

/// The place where one attempt happens, as both sides see it.
///
/// | below `base` | under `jess run` |
/// |---|---|
/// | `work/` | granted for writing |
/// | `lib/` | granted for reading |
/// | `outside/`, `home/` | not granted |
pub struct Scene {
    pub base: PathBuf,
    /// What the plant tells the play (ports, process ids).
    pub words: HashMap<String, String>,
    /// What the play must not get. Empty on the play's side.
    pub secret: String,
}

impl Scene {
    pub fn work(&self, name: &str) -> PathBuf {
        self.base.join("work").join(name)
    }
    pub fn lib(&self, name: &str) -> PathBuf {
        self.base.join("lib").join(name)
    }
    pub fn outside(&self, name: &str) -> PathBuf {
        self.base.join("outside").join(name)
    }
    pub fn word(&self, name: &str) -> &str {
        self.words.get(name).map_or("", String::as_str)
    }
    pub fn number(&self, name: &str) -> i64 {
        self.word(name).parse().unwrap_or(-1)
    }
}

/// Who plays the control.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The user who runs the tests.
    User,
    /// The same, with every capability in namespaces of its own.
    Namespaced,
    /// Root.
    Root,
}

/// What an attempt brought back, or why not.
pub type Played = Result<String, String>;

/// What a run looks like from outside.
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub played: Option<Played>,
    pub stderr: String,
}

/// How success is seen.
pub enum Sign {
    /// The play returned `Ok`.
    Returned,
    /// What the play brought back holds the secret.
    Loot,
    /// This looks at the host after the run.
    Effect(fn(&Scene, &mut Plant, &Ran) -> bool),
}

/// Where an attempt is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Tier `full`.
    Full,
    /// Tier `landlock`, with the newest Landlock of this kernel.
    Landlock,
    /// Tier `landlock` as on a kernel with Landlock ABI 4 (Linux 6.7 to 6.9, Ubuntu 24.04): no scopes.
    OldLandlock,
}

impl World {
    pub const ALL: [World; 3] = [World::Full, World::Landlock, World::OldLandlock];

    /// In front of an attempt's name.
    pub fn prefix(self) -> &'static str {
        match self {
            World::Full => "",
            World::Landlock => "landlock::",
            World::OldLandlock => "landlock_abi_4::",
        }
    }

    /// Options of `jess run`.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            World::Full => &["--tier", "full"],
            World::Landlock => &["--tier", "landlock"],
            World::OldLandlock => &["--tier", "landlock", "--landlock-abi", "4"],
        }
    }
}

/// Whom an attempt gets through for in tier `landlock`, for a reason that docs/threats/sandbox.md gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    Nobody,
    All,
    Root,
    Users,
}

pub struct Attempt {
    pub name: &'static str,
    pub control: Control,
    /// Prepares the host. The plant lives until the verdict.
    pub plant: fn(&Scene) -> Plant,
    /// Runs inside, and as the control outside.
    pub play: fn(&Scene) -> Played,
    pub sign: Sign,
    /// Whether being killed by the filter (SIGSYS) is a way to fail.
    pub may_be_killed: bool,
    /// Whether being ended by jess for too many processes is one.
    pub may_be_ended: bool,
    /// Who gets through in tier `landlock`.
    pub open: Open,
}

/// An attempt that succeeds if `play` returns `Ok`.
pub fn returns(name: &'static str, play: fn(&Scene) -> Played) -> Attempt {
    Attempt {
        name,
        control: Control::User,
        plant: |_| Plant::default(),
        play,
        sign: Sign::Returned,
        may_be_killed: false,
        may_be_ended: false,
        open: Open::Nobody,
    }
}

/// An attempt that succeeds if what `play` brings back holds the scene's secret.
pub fn loots(name: &'static str, play: fn(&Scene) -> Played) -> Attempt {
    Attempt { sign: Sign::Loot, ..returns(name, play) }
}

/// An attempt that succeeds if `seen` says so.
pub fn effects(
    name: &'static str,
    play: fn(&Scene) -> Played,
    seen: fn(&Scene, &mut Plant, &Ran) -> bool,
) -> Attempt {
    Attempt { sign: Sign::Effect(seen), ..returns(name, play) }
}

impl Attempt {
    pub fn planted(self, plant: fn(&Scene) -> Plant) -> Attempt {
        Attempt { plant, ..self }
    }
    pub fn namespaced(self) -> Attempt {
        Attempt { control: Control::Namespaced, ..self }
    }
    pub fn needing_root(self) -> Attempt {
        Attempt { control: Control::Root, ..self }
    }
    pub fn open_in_landlock(self, open: Open) -> Attempt {
        Attempt { open, ..self }
    }
    pub fn may_be_ended(self) -> Attempt {
        Attempt { may_be_ended: true, ..self }
    }
    pub fn may_be_killed(self) -> Attempt {
        Attempt { may_be_killed: true, ..self }
    }
}
