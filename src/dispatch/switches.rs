//! Which stages of the pipeline are on. All of them, except where the drill proves what one is worth.

use crate::egress::HostRule;
use crate::sandbox::{Layer, Weakened};
use ipnet::IpNet;

/// The stages of one run. [`crate::dispatch::run`] always passes [`Switches::all_on`]; the drill alone passes others.
#[derive(Debug, Clone)]
pub(crate) struct Switches {
    /// The sandbox's own layers.
    pub sandbox: Weakened,
    /// The config-poisoning gate.
    pub trust: bool,
    /// The Rule of Two.
    pub rule_of_two: bool,
    /// Sealing the prompt's untrusted parts.
    pub envelope: bool,
    /// Judging tool calls.
    pub hooks: bool,
    /// Sealing tool results.
    pub seal: bool,
    /// The model's key stays outside.
    pub key: bool,
    /// `Some`: the allowlist and the address screen let this through.
    pub open_egress: Option<OpenEgress>,
    /// The output gates.
    pub gate: bool,
    /// Nobody counts as present, also where the drill is held from a terminal.
    pub nobody_there: bool,
}

/// What an egress without its allowlist would let through.
#[derive(Debug, Clone)]
pub(crate) struct OpenEgress {
    pub rule: HostRule,
    pub network: IpNet,
}

/// A stage of the pipeline that is no layer of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Trust,
    RuleOfTwo,
    Envelope,
    Hooks,
    Seal,
    Gateway,
    Egress,
    Gate,
}

impl Stage {
    pub const ALL: [Stage; 8] = [
        Stage::Trust,
        Stage::RuleOfTwo,
        Stage::Envelope,
        Stage::Hooks,
        Stage::Seal,
        Stage::Gateway,
        Stage::Egress,
        Stage::Gate,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Stage::Trust => "trust",
            Stage::RuleOfTwo => "rule-of-two",
            Stage::Envelope => "envelope",
            Stage::Hooks => "hooks",
            Stage::Seal => "seal",
            Stage::Gateway => "gateway",
            Stage::Egress => "egress",
            Stage::Gate => "gate",
        }
    }
}

impl Switches {
    /// Every stage and layer engages.
    pub fn all_on() -> Switches {
        Switches {
            sandbox: Weakened::none(),
            trust: true,
            rule_of_two: true,
            envelope: true,
            hooks: true,
            seal: true,
            key: true,
            open_egress: None,
            gate: true,
            nobody_there: false,
        }
    }

    /// All but one layer of the sandbox. For the drill alone.
    pub fn without_layer(layer: Layer) -> Switches {
        Switches { sandbox: Weakened::without(layer), ..Switches::all_on() }
    }

    /// All but one stage. For the drill alone. An open egress lets `open` through.
    pub fn without_stage(stage: Stage, open: OpenEgress) -> Switches {
        let mut switches = Switches::all_on();
        match stage {
            Stage::Trust => switches.trust = false,
            Stage::RuleOfTwo => switches.rule_of_two = false,
            Stage::Envelope => switches.envelope = false,
            Stage::Hooks => switches.hooks = false,
            Stage::Seal => switches.seal = false,
            Stage::Gateway => switches.key = false,
            Stage::Egress => switches.open_egress = Some(open),
            Stage::Gate => switches.gate = false,
        }
        switches
    }
}
