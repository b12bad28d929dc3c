//! What a name in a repository is to the client: which directories matter, and what each file in them is.

use super::judge::Kind;
use super::rules::other;
use super::walk::join;
use rustix::fs::AtFlags;
use std::os::fd::BorrowedFd;

/// What a directory is to the client, which decides what the names in it mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Any directory.
    Plain,
    /// `.claude`
    Claude,
    /// `.claude-plugin`
    PluginMeta,
    /// `hooks` in a plugin
    PluginHooks,
    /// `monitors` in a plugin
    PluginMonitors,
    /// `agents`, `commands`, `skills`, `rules`, `output-styles`, and what is below them
    Agents,
    Commands,
    Skills,
    Rules,
    Styles,
    /// The rest of `.claude`, where only nested `.claude` directories matter.
    Inert,
}

/// True when a directory holds `.claude-plugin`, which makes it a plugin or a marketplace.
pub(super) fn plugin_root(fd: BorrowedFd<'_>, place: Place) -> bool {
    matches!(place, Place::Plain | Place::Skills | Place::Inert)
        && rustix::fs::statat(fd, ".claude-plugin", AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// What the directory `name` in a directory of kind `place` is.
pub(super) fn child_place(place: Place, plugin: bool, name: &[u8]) -> Place {
    match (place, name) {
        // Copies of the repository live below .claude/worktrees; they are repositories of their own.
        (_, b".claude") => Place::Claude,
        (_, b".claude-plugin") => Place::PluginMeta,
        (Place::Claude, b"agents") => Place::Agents,
        (Place::Claude, b"commands") => Place::Commands,
        (Place::Claude, b"skills") => Place::Skills,
        (Place::Claude, b"rules") => Place::Rules,
        (Place::Claude, b"output-styles") => Place::Styles,
        (Place::Claude, b"worktrees") => Place::Plain,
        (Place::Claude, _) => Place::Inert,
        (_, b"agents") if plugin => Place::Agents,
        (_, b"commands") if plugin => Place::Commands,
        (_, b"skills") if plugin => Place::Skills,
        (_, b"output-styles") if plugin => Place::Styles,
        (_, b"hooks") if plugin => Place::PluginHooks,
        (_, b"monitors") if plugin => Place::PluginMonitors,
        (Place::PluginMeta | Place::PluginHooks | Place::PluginMonitors, _) => Place::Plain,
        (place, _) => place,
    }
}

/// True for the name of a directory whose replacement by a link must not go unseen.
pub(super) fn directory_matters(place: Place, plugin: bool, name: &[u8]) -> bool {
    let child = child_place(place, plugin, name);
    child != place && child != Place::Inert && child != Place::Plain
        || matches!(place, Place::Agents | Place::Commands | Place::Skills | Place::Rules | Place::Styles)
}

/// What the client takes the file `name` in a directory of kind `place` for.
pub(super) fn file_kind(place: Place, plugin: bool, name: &[u8], parent: &[u8]) -> Option<Kind> {
    let markdown =
        name.len() > 3 && name.get(name.len() - 3..).is_some_and(|e| e.eq_ignore_ascii_case(b".md"));
    let by_place = match place {
        Place::Claude => match name {
            b"settings.json" | b"settings.local.json" => Some(Kind::Settings),
            b"CLAUDE.md" | b"CLAUDE.local.md" => Some(Kind::Memory),
            b"scheduled_tasks.json" => Some(Kind::Schedule),
            _ => None,
        },
        Place::PluginMeta => match name {
            b"plugin.json" => Some(Kind::Manifest),
            b"marketplace.json" => Some(Kind::Marketplace),
            _ => None,
        },
        Place::PluginHooks if name == b"hooks.json" => Some(Kind::Hooks),
        Place::PluginMonitors if name == b"monitors.json" => Some(Kind::Monitors),
        Place::Agents if markdown => Some(Kind::Agent),
        Place::Commands if markdown => Some(Kind::Command),
        Place::Skills if name.eq_ignore_ascii_case(b"SKILL.md") => Some(Kind::Skill),
        Place::Styles if markdown => Some(Kind::Style),
        Place::Rules if markdown => Some(Kind::Memory),
        _ => None,
    };
    by_place.or_else(|| match name {
        b".mcp.json" if plugin => Some(Kind::PluginMcp),
        b".mcp.json" => Some(Kind::Mcp),
        b".lsp.json" if plugin => Some(Kind::Lsp),
        b"monitors.json" if plugin => Some(Kind::Monitors),
        b"settings.json" if plugin => Some(Kind::Settings),
        b"hooks.json" if parent == b"hooks" || parent.ends_with(b"/hooks") => Some(Kind::MaybeHooks),
        b"CLAUDE.md" | b"CLAUDE.local.md" | b"AGENTS.md" | b"AGENTS.local.md" | b"AGENTS.override.md" => {
            Some(Kind::Memory)
        }
        b"qlpack.yml" | b"qlpack.yaml" | b"codeql-pack.yml" | b"codeql-pack.yaml" => Some(Kind::CodeQlPack),
        b"codeql-config.yml" | b"codeql-config.yaml"
            if parent == b".github/codeql" || parent.ends_with(b"/.github/codeql") =>
        {
            Some(Kind::CodeQlConfig)
        }
        _ => interesting(name, parent).map(Kind::Other),
    })
}

/// The other agents' files. Most names in a repository are none, so the first byte and the parent decide quickly.
fn interesting(name: &[u8], parent: &[u8]) -> Option<&'static str> {
    let base = parent.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let dotted = name.starts_with(b".")
        || base.starts_with(b".")
        || matches!(base, b"rules" | b"instructions")
        || matches!(base, b"prompts" | b"agents" | b"settings")
        || parent.windows(14).any(|w| w == b".devcontainer/");
    let named = matches!(name, b"GEMINI.md" | b"WARP.md" | b"opencode.json" | b"opencode.jsonc");
    if dotted || named { other::label(&join(parent, name)) } else { None }
}
