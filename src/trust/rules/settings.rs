//! The settings files of Claude Code (2.1.x): one table of keys, and the walk that applies it.
//!
//! A key that is not in the table is reported, and refuses the target when its value looks like something to run.

use super::{Sink, command, environment, hooks, mcp, truthy};
use crate::trust::mask;
use crate::trust::report::Class;
use serde_json::{Map, Value};

/// What a key may hold.
#[derive(Clone, Copy)]
enum Rule {
    /// Anything: it tightens, decorates or limits.
    Fine,
    /// Nothing that switches it on.
    Never(Class),
    /// Nothing but `false`, because the default or the operator's own value is the stricter one.
    NotTrue(Class),
    /// Nothing but `true`: an explicit `false` would undo the operator's stricter choice.
    NotFalse(Class),
    /// One of these words.
    OneOf(Class, &'static [&'static str]),
    /// A path, or an object or list of paths, inside the repository.
    Inside,
    /// An object whose values are all false.
    AllOff(Class),
    /// Patterns of instruction files to leave out, none of them the operator's own.
    Excludes,
    /// A status line: a command, or static text.
    StatusLine,
    /// An object with a table of its own; the flag says that an unknown key in it refuses.
    Group(&'static [(&'static str, Rule)], bool),
    /// Judged by another module.
    Hooks,
    Env,
    Mcp,
    /// Shown, never refused.
    Shown,
}

use Class::{
    LoadsCode, McpServer, ModelEndpoint, OpensNetwork, RunsCommand, WeakensGuard, WidensPermissions,
};
use Rule::{
    AllOff, Env, Excludes, Fine, Group, Hooks, Inside, Mcp, Never, NotFalse, NotTrue, OneOf, Shown,
    StatusLine,
};

#[rustfmt::skip]
const PERMISSIONS: &[(&str, Rule)] = &[
    ("deny", Fine),
    ("ask", Fine),
    ("allow", Never(WidensPermissions)),
    ("additionalDirectories", Never(WidensPermissions)),
    ("defaultMode", OneOf(WidensPermissions, &["default", "plan", "manual", "dontAsk"])),
    ("disableBypassPermissionsMode", OneOf(WidensPermissions, &["disable"])),
    ("disableAutoMode", OneOf(WidensPermissions, &["disable"])),
    ("denyInsteadOfPrompting", NotFalse(WidensPermissions)),
];

#[rustfmt::skip]
const SANDBOX: &[(&str, Rule)] = &[
    ("enabled", NotFalse(WeakensGuard)),
    ("failIfUnavailable", NotFalse(WeakensGuard)),
    ("autoAllowBashIfSandboxed", NotTrue(WidensPermissions)),
    ("allowUnsandboxedCommands", NotTrue(WeakensGuard)),
    ("excludedCommands", Never(WeakensGuard)),
    ("ignoreViolations", Never(WeakensGuard)),
    ("enableWeakerNestedSandbox", NotTrue(WeakensGuard)),
    ("enableWeakerNetworkIsolation", NotTrue(WeakensGuard)),
    ("allowNestedUserNamespaces", NotTrue(WeakensGuard)),
    ("allowAppleEvents", NotTrue(WeakensGuard)),
    ("enabledPlatforms", Never(WeakensGuard)),
    ("ripgrep", Never(RunsCommand)),
    ("bwrapPath", Never(RunsCommand)),
    ("socatPath", Never(RunsCommand)),
    ("seccomp", Never(RunsCommand)),
    ("backend", Never(WeakensGuard)),
    ("windows", Never(WeakensGuard)),
    ("credentials", Never(OpensNetwork)),
    ("network", Group(SANDBOX_NETWORK, true)),
    ("filesystem", Group(SANDBOX_FILES, true)),
];

#[rustfmt::skip]
const SANDBOX_NETWORK: &[(&str, Rule)] = &[
    ("deniedDomains", Fine),
    ("strictAllowlist", NotFalse(WeakensGuard)),
    ("allowManagedDomainsOnly", NotFalse(WeakensGuard)),
    ("allowedDomains", Never(OpensNetwork)),
    ("allowUnixSockets", Never(WeakensGuard)),
    ("allowAllUnixSockets", NotTrue(WeakensGuard)),
    ("allowLocalBinding", NotTrue(OpensNetwork)),
    ("allowMachLookup", Never(WeakensGuard)),
    ("httpProxyPort", Never(OpensNetwork)),
    ("socksProxyPort", Never(OpensNetwork)),
    ("tlsTerminate", Never(OpensNetwork)),
];

#[rustfmt::skip]
const SANDBOX_FILES: &[(&str, Rule)] = &[
    ("denyRead", Fine),
    ("denyWrite", Fine),
    ("allowRead", Never(WeakensGuard)),
    ("allowWrite", Never(WeakensGuard)),
    ("allowManagedReadPathsOnly", NotFalse(WeakensGuard)),
    ("disabled", NotTrue(WeakensGuard)),
];

#[rustfmt::skip]
const WORKTREE: &[(&str, Rule)] = &[
    ("baseRef", Fine),
    ("sparsePaths", Inside),
    ("symlinkDirectories", Inside),
    ("location", Inside),
    ("bgIsolation", OneOf(WeakensGuard, &["worktree", "auto"])),
];

#[rustfmt::skip]
const REMOTE_TOOLS: &[(&str, Rule)] = &[("allowUnattendedServing", NotTrue(WidensPermissions))];

/// Every key of a settings file, by what it does.
#[rustfmt::skip]
const SETTINGS: &[(&str, Rule)] = &[
    // Run a command.
    ("apiKeyHelper", Never(RunsCommand)),
    ("proxyAuthHelper", Never(RunsCommand)),
    ("awsAuthHelper", Never(RunsCommand)),
    ("awsAuthRefresh", Never(RunsCommand)),
    ("awsCredentialExport", Never(RunsCommand)),
    ("gcpAuthRefresh", Never(RunsCommand)),
    ("gcpAuthHelper", Never(RunsCommand)),
    ("otelHeadersHelper", Never(RunsCommand)),
    ("policyHelper", Never(RunsCommand)),
    ("policyHelpers", Never(RunsCommand)),
    ("processWrapper", Never(RunsCommand)),
    ("fileSuggestion", Never(RunsCommand)),
    ("statusLine", StatusLine),
    ("subagentStatusLine", StatusLine),
    ("sshConfigs", Never(RunsCommand)),
    ("defaultShell", OneOf(RunsCommand, &["bash", "powershell"])),
    ("hooks", Hooks),
    ("env", Env),
    // Servers and code.
    ("mcpServers", Mcp),
    ("managedMcpServers", Never(McpServer)),
    ("enableAllProjectMcpServers", NotTrue(McpServer)),
    ("enabledMcpjsonServers", Never(McpServer)),
    ("allowAllClaudeAiMcps", NotTrue(McpServer)),
    ("allowClaudeInChromeWithManagedMcp", NotTrue(McpServer)),
    ("enabledPlugins", AllOff(LoadsCode)),
    ("extraKnownMarketplaces", Never(LoadsCode)),
    ("additionalMarketplaces", Never(LoadsCode)),
    ("pluginConfigs", Never(LoadsCode)),
    ("prependPlugins", Never(LoadsCode)),
    ("appendPlugins", Never(LoadsCode)),
    ("pluginSuggestionMarketplaces", Never(LoadsCode)),
    ("allowedChannelPlugins", Never(LoadsCode)),
    ("channelsEnabled", NotTrue(LoadsCode)),
    ("additionalDirectoryConfigRoots", Never(LoadsCode)),
    ("downloadsMirrorUrl", Never(LoadsCode)),
    ("disableCommandPluginSources", NotFalse(LoadsCode)),
    ("disableSideloadFlags", NotFalse(LoadsCode)),
    ("disableDirectMcpSkills", NotFalse(LoadsCode)),
    ("disabledMcpjsonServers", Fine),
    ("deniedMcpServers", Fine),
    ("allowedMcpServers", Fine),
    ("disableClaudeAiConnectors", Fine),
    ("strictKnownMarketplaces", Fine),
    ("allowedMarketplaces", Fine),
    ("blockedMarketplaces", Fine),
    ("strictPluginOnlyCustomization", NotFalse(LoadsCode)),
    ("skillOverrides", Shown),
    // Permissions.
    ("permissions", Group(PERMISSIONS, true)),
    ("autoMode", Never(WidensPermissions)),
    ("skipDangerousModePermissionPrompt", Never(WidensPermissions)),
    ("skipAutoPermissionPrompt", Never(WidensPermissions)),
    ("skipWorkflowUsageWarning", Never(WidensPermissions)),
    ("useAutoModeDuringPlan", NotTrue(WidensPermissions)),
    ("disableAutoMode", OneOf(WidensPermissions, &["disable"])),
    ("allowManagedPermissionRulesOnly", NotFalse(WidensPermissions)),
    ("remoteControlAtStartup", NotTrue(OpensNetwork)),
    ("remoteControl", Never(OpensNetwork)),
    ("remoteTools", Group(REMOTE_TOOLS, true)),
    ("crossSessionInbound", Never(OpensNetwork)),
    ("shareHostProfile", Never(OpensNetwork)),
    ("autoUploadSessions", NotTrue(OpensNetwork)),
    ("isolatePeerMachines", NotFalse(WeakensGuard)),
    ("daemonColdStart", Shown),
    // Network.
    ("allowedHttpHookUrls", Never(OpensNetwork)),
    ("httpHookAllowedEnvVars", Never(OpensNetwork)),
    ("skipWebFetchPreflight", NotTrue(WeakensGuard)),
    ("remote", Shown),
    ("feedbackSurveyRate", Fine),
    ("prUrlTemplate", Shown),
    // The model and the account.
    ("modelCatalogUrl", Never(ModelEndpoint)),
    ("modelCatalogPublicKey", Never(ModelEndpoint)),
    ("modelOverrides", Never(ModelEndpoint)),
    ("xaaIdp", Never(ModelEndpoint)),
    ("forceLoginGatewayUrl", Never(ModelEndpoint)),
    ("gatewayInternalNetworks", Never(ModelEndpoint)),
    ("forceLoginOrgUUID", Never(ModelEndpoint)),
    ("allowNestedModelAccessUnderForceLogin", NotTrue(ModelEndpoint)),
    ("forceLoginMethod", Shown),
    ("allowedProviders", Shown),
    ("modelPricing", Shown),
    ("model", Fine),
    ("fallbackModel", Fine),
    ("advisorModel", Fine),
    ("availableModels", Fine),
    ("enforceAvailableModels", Fine),
    ("availableModelsMatch", Fine),
    ("deniedModels", Fine),
    ("modelPicker", Fine),
    ("modelSettings", Fine),
    ("effortLevel", Fine),
    ("maxEffortLevel", Fine),
    // Guards.
    ("sandbox", Group(SANDBOX, true)),
    ("disableAllHooks", NotTrue(WeakensGuard)),
    ("allowManagedHooksOnly", NotFalse(WeakensGuard)),
    ("allowManagedMcpServersOnly", NotFalse(WeakensGuard)),
    ("disableSkillShellExecution", NotFalse(WeakensGuard)),
    ("disableRemoteControl", NotFalse(WeakensGuard)),
    ("managedSourcesBehavior", Shown),
    ("parentSettingsBehavior", Shown),
    ("pluginTrustMessage", Never(WeakensGuard)),
    ("claudeMdExcludes", Excludes),
    ("claudeMd", Shown),
    // Paths.
    ("autoMemoryDirectory", Inside),
    ("plansDirectory", Inside),
    ("worktree", Group(WORKTREE, false)),
    ("spinnerTipsOverride", Shown),
    // Look, language, limits.
    ("$schema", Fine),
    ("agent", Shown),
    ("alwaysThinkingEnabled", Fine),
    ("agentPushNotifEnabled", Fine),
    ("askUserQuestionTimeout", Fine),
    ("attribution", Fine),
    ("attributionProject", Fine),
    ("attributionProjectPolicy", Fine),
    ("autoCompactEnabled", Fine),
    ("autoCompactOfferAnswer", Fine),
    ("autoCompactRaisedForLoad", Fine),
    ("autoCompactWindow", Fine),
    ("autoContinueAtUsageLimit", Fine),
    ("autoDreamEnabled", Fine),
    ("autoMemoryEnabled", Fine),
    ("autoScrollEnabled", Fine),
    ("autoUpdates", Fine),
    ("autoUpdatesChannel", Fine),
    ("awaySummaryEnabled", Fine),
    ("bashEditDiffEnabled", Fine),
    ("bashOutputMaxChars", Fine),
    ("breakReminder", Fine),
    ("clawdFileProgressEnabled", Fine),
    ("cleanupPeriodDays", Fine),
    ("companyAnnouncements", Fine),
    ("defaultView", Fine),
    ("desktopMcpServersListScope", Fine),
    ("desktopSessionCleanupPeriodDays", Fine),
    ("dialogExpiry", Fine),
    ("disableAgentView", Fine),
    ("disableArtifact", Fine),
    ("disableBundledSkills", Fine),
    ("disableDeepLinkRegistration", Fine),
    ("disableReplyCheck", Fine),
    ("disableWindowsBashCommandSplit", Fine),
    ("disableWorkflows", Fine),
    ("doneMeansMerged", Fine),
    ("editorMode", Fine),
    ("emojiCompletionEnabled", Fine),
    ("enableArtifact", Fine),
    ("enableWorkflows", Fine),
    ("fastMode", Fine),
    ("fastModePerSessionOptIn", Fine),
    ("feedbackDrafts", Fine),
    ("fileCheckpointingEnabled", Fine),
    ("footerLinksRegexes", Shown),
    ("forceRemoteSettingsRefresh", Fine),
    ("idleCompaction", Fine),
    ("includeCoAuthoredBy", Fine),
    ("includeGitInstructions", Fine),
    ("inputNeededNotifEnabled", Fine),
    ("keybindingFlavor", Fine),
    ("language", Fine),
    ("maxProseWidth", Fine),
    ("minimumVersion", Fine),
    ("modelProposedGoals", Fine),
    ("outputStyle", Fine),
    ("precomputeArmTokens", Fine),
    ("precomputeCompactionEnabled", Fine),
    ("preferredNotifChannel", Fine),
    ("prefersReducedMotion", Fine),
    ("promptCacheTtl", Fine),
    ("promptSuggestionEnabled", Fine),
    ("quietHours", Fine),
    ("remoteMessageReceipts", Fine),
    ("requiredMaximumVersion", Shown),
    ("requiredMinimumVersion", Fine),
    ("respectGitignore", Fine),
    ("respondToBashCommands", Fine),
    ("responseComparisonEnabled", Fine),
    ("showClearContextOnPlanAccept", Fine),
    ("showMessageTimestamps", Fine),
    ("showThinkingSummaries", Fine),
    ("showTurnDuration", Fine),
    ("skillListingBudgetFraction", Fine),
    ("skillListingMaxDescChars", Fine),
    ("spellcheck", Fine),
    ("spinnerTipsEnabled", Fine),
    ("spinnerVerbs", Fine),
    ("subagentPromptCacheTtl", Fine),
    ("switchModelsOnFlag", Fine),
    ("syncClaudeAiPlugins", Fine),
    ("syncClaudeAiSkills", Fine),
    ("syntaxHighlightingDisabled", Fine),
    ("taskOutputMaxChars", Fine),
    ("teammateMode", Fine),
    ("terminalProgressBarEnabled", Fine),
    ("terminalTitleFromRename", Fine),
    ("theme", Fine),
    ("timeFormat", Fine),
    ("timeZone", Fine),
    ("todoFeatureEnabled", Fine),
    ("totalTokensReminder", Fine),
    ("totalTokensReminderAfterUserTurn", Fine),
    ("totalTokensReminderBudget", Fine),
    ("tui", Fine),
    ("ultracode", Fine),
    ("verbose", Fine),
    ("viewMode", Fine),
    ("vimInsertModeRemaps", Fine),
    ("voice", Fine),
    ("voiceEnabled", Fine),
    ("wheelScrollAccelerationEnabled", Fine),
    ("workflowKeywordTriggerEnabled", Fine),
    ("workflowSizeGuideline", Fine),
    ("wslInheritsWindowsSettings", Fine),
];

/// Judges a settings file.
pub fn check(sink: &mut Sink, value: &Value) {
    if let Some(root) = super::root_object(sink, value) {
        apply(sink, "", root, SETTINGS, false);
    }
}

fn apply(
    sink: &mut Sink,
    prefix: &str,
    object: &Map<String, Value>,
    table: &'static [(&'static str, Rule)],
    strict: bool,
) {
    // Table order first, so that a report reads the same whatever the order of keys in the file.
    for (key, rule) in table {
        if let Some(value) = object.get(*key) {
            judge(sink, &format!("{prefix}{key}"), value, *rule);
        }
    }
    for (key, value) in object.iter().filter(|(key, _)| table.iter().all(|(known, _)| known != key)) {
        let label = format!("{} (unknown key)", super::label(&format!("{prefix}{key}")));
        if (strict && truthy(value)) || command::suspicious(key, value) {
            sink.block(Class::UnknownKey, label, mask::json(value));
        } else {
            sink.info(Class::UnknownKey, label, mask::json(value));
        }
    }
}

fn judge(sink: &mut Sink, path: &str, value: &Value, rule: Rule) {
    match rule {
        Fine => {}
        Shown => {
            if truthy(value) {
                sink.info(Class::Note, path, mask::json(value));
            }
        }
        Never(class) | NotTrue(class) => {
            if truthy(value) {
                sink.names_scripts(value);
                sink.block(class, path, mask::json(value));
            }
        }
        NotFalse(class) => {
            if !matches!(value, Value::Bool(true) | Value::Null) {
                sink.block(class, path, mask::json(value));
            }
        }
        OneOf(class, words) => {
            if !value.is_null() && !value.as_str().is_some_and(|word| words.contains(&word)) {
                let shown = value.as_str().map_or_else(|| mask::json(value), mask::plain);
                sink.block(class, path, shown);
            }
        }
        Inside => paths(sink, path, value),
        Excludes => excludes(sink, path, value),
        AllOff(class) => match value {
            Value::Object(map) => {
                for (name, on) in map.iter().filter(|(_, on)| !matches!(on, Value::Bool(false) | Value::Null))
                {
                    sink.block(class, format!("{path} {}", mask::name(name)), mask::json(on));
                }
            }
            other if truthy(other) => sink.block(class, path, mask::json(other)),
            _ => {}
        },
        StatusLine => status_line(sink, path, value),
        Group(table, strict) => match value {
            Value::Object(map) => apply(sink, &format!("{path}."), map, table, strict),
            Value::Null => {}
            other => {
                let class = if path == "permissions" { WidensPermissions } else { WeakensGuard };
                sink.block(class, format!("{path} (unrecognised shape)"), mask::json(other));
            }
        },
        Hooks => hooks::check(sink, value),
        Env => environment::check(sink, value),
        Mcp => mcp::check_servers(sink, value),
    }
}

fn status_line(sink: &mut Sink, path: &str, value: &Value) {
    sink.names_scripts(value);
    match value {
        Value::Object(map) => {
            let command = map.get("command");
            match command {
                Some(Value::String(text)) if !text.is_empty() => {
                    sink.block(RunsCommand, format!("{path} command"), mask::secret(text));
                }
                Some(other) if truthy(other) => {
                    sink.block(RunsCommand, format!("{path} (unrecognised shape)"), mask::json(other));
                }
                _ => {
                    let known = map.get("type").is_none_or(|t| t == "static" || t.is_null());
                    if !known || map.iter().any(|(k, v)| k != "text" && command::suspicious(k, v)) {
                        sink.block(RunsCommand, format!("{path} (unrecognised shape)"), mask::keys(map));
                    }
                }
            }
        }
        other if truthy(other) => {
            sink.block(RunsCommand, format!("{path} (unrecognised shape)"), mask::json(other));
        }
        _ => {}
    }
}

/// Where a person's own instructions are, and an organisation's.
const OWN_INSTRUCTIONS: &[&str] = &[
    "/home/someone/.claude/CLAUDE.md",
    "/home/someone/.claude/rules/some.md",
    "/root/.claude/CLAUDE.md",
    "/Users/someone/.claude/CLAUDE.md",
    "/etc/claude-code/CLAUDE.md",
];

/// Patterns that are looked at; each has to be compiled.
const MAX_EXCLUDES: usize = 100;

/// Blocks patterns that would also leave out the operator's own instructions.
fn excludes(sink: &mut Sink, path: &str, value: &Value) {
    match value {
        Value::Array(items) if items.len() > MAX_EXCLUDES => {
            sink.block(Class::LimitReached, path, format!("more than {MAX_EXCLUDES} patterns"));
        }
        Value::Array(items) => items.iter().for_each(|item| excludes(sink, path, item)),
        Value::String(pattern) => {
            // What the client's matcher understands and this one does not.
            let extended = pattern.contains('(') || pattern.starts_with(['!', '~']);
            let glob = globset::GlobBuilder::new(pattern).literal_separator(true).build();
            let takes_own = glob.map_or(true, |glob| {
                let matcher = glob.compile_matcher();
                OWN_INSTRUCTIONS.iter().any(|own| matcher.is_match(own))
            });
            if extended || takes_own {
                sink.block(
                    WeakensGuard,
                    format!("{path} (your own instructions too)"),
                    mask::target(pattern),
                );
            } else {
                sink.info(Class::Note, path, mask::target(pattern));
            }
        }
        other if truthy(other) => {
            sink.block(WeakensGuard, format!("{path} (unrecognised shape)"), mask::json(other))
        }
        _ => {}
    }
}

/// Blocks a path that leaves the repository; looks into lists and objects.
fn paths(sink: &mut Sink, label: &str, value: &Value) {
    match value {
        Value::String(text) if leaves(text) => sink.block(Class::OutsidePath, label, mask::target(text)),
        Value::Array(items) => items.iter().for_each(|item| paths(sink, label, item)),
        Value::Object(map) => map.values().for_each(|item| paths(sink, label, item)),
        _ => {}
    }
}

/// True for a path that is absolute, in a home directory, holds a variable, or climbs above where it starts.
pub(super) fn leaves(path: &str) -> bool {
    if path.starts_with(['/', '~', '\\']) || path.contains('$') || path.as_bytes().get(1) == Some(&b':') {
        return true;
    }
    let mut depth = 0i64;
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}
