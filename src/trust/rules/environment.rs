//! Environment variables that a settings file may not set: names by set, by prefix and by pattern.

use super::{Sink, truthy};
use crate::trust::mask;
use crate::trust::report::Class;
use serde_json::Value;

/// Judges the value of an `env` key. Names are compared without regard to case; values are never shown.
pub fn check(sink: &mut Sink, value: &Value) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if dangerous(name, &text) {
                    sink.block(Class::Environment, format!("env {}", mask::name(name)), mask::hidden(&text));
                }
            }
        }
        other if truthy(other) => {
            sink.block(Class::Environment, "env (unrecognised shape)", mask::json(other));
        }
        _ => {}
    }
}

/// True when setting `name` to `value` steers the client, or a program that it starts.
pub fn dangerous(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let harmless = HARMLESS.contains(&upper.as_str())
        || (upper == "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB" && truthy_text(value))
        || (MODEL_NAMES.contains(&upper.as_str()) && plain_model_name(value));
    if harmless {
        return false;
    }
    NAMES.contains(&upper.as_str())
        || PREFIXES.iter().any(|p| upper.starts_with(p))
        || SUFFIXES.iter().any(|s| upper.ends_with(s))
        || !portable_name(name)
        || value.trim_start().starts_with("() {")
}

fn truthy_text(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

/// A name a shell could export. Anything else (`BASH_FUNC_x%%`, `A=B`, controls) has a use of its own.
fn portable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A model's name, and no ARN, path or URL that would send the conversation elsewhere.
fn plain_model_name(value: &str) -> bool {
    value.len() <= 64
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '[' | ']' | '@'))
}

const MODEL_NAMES: &[&str] = &[
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
];

/// Members of the prefixes below that only limit, time or decorate.
const HARMLESS: &[&str] = &[
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE",
    "CLAUDE_CODE_EFFORT_LEVEL",
    "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_HIDE_ACCOUNT_INFO",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CARGO_BUILD_JOBS",
    "CARGO_INCREMENTAL",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "NODE_ENV",
    "NODE_NO_WARNINGS",
    "NPM_CONFIG_AUDIT",
    "NPM_CONFIG_COLOR",
    "NPM_CONFIG_FUND",
    "NPM_CONFIG_LOGLEVEL",
    "NPM_CONFIG_PROGRESS",
    "NPM_CONFIG_UPDATE_NOTIFIER",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_NO_CACHE_DIR",
    "PIP_NO_INPUT",
    "PIP_PROGRESS_BAR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "UV_NO_PROGRESS",
    "YARN_ENABLE_TELEMETRY",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DOTNET_NOLOGO",
    "HOMEBREW_NO_ANALYTICS",
    "HOMEBREW_NO_AUTO_UPDATE",
];

const SUFFIXES: &[&str] = &["_PROXY", "_PROXY_COMMAND", "_ASKPASS", "_CA_BUNDLE", "_CACERT", "_PRELOAD"];

const PREFIXES: &[&str] = &[
    // The client, its model providers, and guards such as this one.
    "ANTHROPIC_",
    "CLAUDE",
    "JESS_",
    "RAPTOR_",
    "_RAPTOR_",
    "SAGE_",
    "CCR_",
    "SELF_HOSTED_RUNNER_",
    "OTEL_",
    "BETA_TRACING_",
    "VERTEX_",
    "BEDROCK_",
    "OPENAI_",
    "GEMINI_",
    "AZURE_",
    "GOOGLE_",
    "CLOUDSDK_",
    "GCE_METADATA_",
    "GCLOUD_",
    // Shells, loaders and the C library.
    "BASH_FUNC_",
    "LD_",
    "DYLD_",
    "MALLOC_",
    "JE_MALLOC",
    "GLIBC_",
    "GCONV_",
    "GNUTLS_",
    "OPENSSL_",
    "SSL_",
    "CURL_",
    "KRB5",
    "XDG_",
    "HIST",
    // Version control.
    "GIT_",
    "GH_",
    "GITHUB_",
    "HG",
    "SVN_",
    "BZR_",
    "CVS_",
    // Package managers and language run-times.
    "NPM_",
    "YARN_",
    "PNPM_",
    "COREPACK_",
    "NODE_",
    "BUN_",
    "DENO_",
    "NVM_",
    "VOLTA_",
    "ELECTRON_",
    "ESBUILD_",
    "PUPPETEER_",
    "PLAYWRIGHT_",
    "PIP_",
    "PIPX_",
    "UV_",
    "POETRY_",
    "PDM_",
    "CONDA_",
    "PYTHON",
    "PYTEST_",
    "PERL",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "CARGO_",
    "RUSTUP_",
    "RUSTC",
    "JAVA_",
    "_JAVA_",
    "JDK_",
    "MAVEN_",
    "MVN_",
    "GRADLE_",
    "SBT_",
    "DOTNET_",
    "NUGET_",
    "COMPLUS_",
    "CORECLR_",
    "COMPOSER_",
    "PHP",
    "LUA_",
    "R_",
    "JULIA_",
    "HOMEBREW_",
    "NIX_",
    "CMAKE_",
    "CCACHE_",
    "SCCACHE_",
    "MAKE",
    // Containers, clouds, infrastructure.
    "DOCKER_",
    "BUILDAH_",
    "CONTAINER",
    "KUBE",
    "HELM_",
    "TF_",
    "TERRAFORM_",
    "ANSIBLE_",
    "VAGRANT_",
    "PULUMI_",
    "AWS_ENDPOINT",
    "AWS_CONTAINER_",
    "VAULT_",
    "SOPS_",
    // Secrets and sign-in.
    "SSH_",
    "SUDO_",
    "GPG_",
    "GNUPG",
    "PINENTRY",
];

const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "OLDPWD",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT_COMMAND",
    "CDPATH",
    "FPATH",
    "ZDOTDIR",
    "GLOBIGNORE",
    "FIGNORE",
    "INPUTRC",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TERMCAP",
    "TERM_PROGRAM",
    "TERMINAL",
    "TMP",
    "TEMP",
    "TMPDIR",
    "TMPPREFIX",
    "MAIL",
    "MAILPATH",
    "MAILCHECK",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "MANPATH",
    "BROWSER",
    "LESS",
    "LESSOPEN",
    "LESSCLOSE",
    "LESSKEY",
    "LESSKEYIN",
    "LESSEDIT",
    "SYSTEMD_PAGER",
    "SYSTEMD_EDITOR",
    "BAT_PAGER",
    "DELTA_PAGER",
    "FCEDIT",
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "RSYNC_PROXY",
    "NO_PROXY",
    "SOCKS_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSLKEYLOGFILE",
    "HTTPSIG_KEY",
    "WGETRC",
    "NETRC",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "RES_OPTIONS",
    "LOCPATH",
    "NLSPATH",
    "TZDIR",
    "CHARSET_ALIAS",
    "FONTCONFIG_FILE",
    "FONTCONFIG_PATH",
    "RIPGREP_CONFIG_PATH",
    "FZF_DEFAULT_COMMAND",
    "FZF_DEFAULT_OPTS",
    "FD_CONFIG_PATH",
    "BAT_CONFIG_PATH",
    "VIRTUAL_ENV",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_CONFIG_FILE",
    "DIRENV_CONFIG",
    "COVERAGE_PROCESS_START",
    "TOX_CONFIG_FILE",
    "IPYTHONDIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_PATH",
    "CLASSPATH",
    "JAVA_HOME",
    "ANT_OPTS",
    "ANT_HOME",
    "GROOVY_HOME",
    "KOTLIN_HOME",
    "SCALA_HOME",
    "CATALINA_OPTS",
    "GOFLAGS",
    "GOENV",
    "GOPROXY",
    "GONOPROXY",
    "GOSUMDB",
    "GONOSUMDB",
    "GOINSECURE",
    "GOPRIVATE",
    "GOPATH",
    "GOROOT",
    "GOTOOLCHAIN",
    "GOTOOLDIR",
    "GOVCS",
    "GOWORK",
    "GOBIN",
    "CC",
    "CXX",
    "CPP",
    "FC",
    "AS",
    "AR",
    "LD",
    "NM",
    "RANLIB",
    "STRIP",
    "LDFLAGS",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "COLLECT_GCC",
    "PKG_CONFIG",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_LIBDIR",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "DISTCC_HOSTS",
    "MSBUILD_EXE_PATH",
    "MSBUILDSDKSPATH",
    "PSMODULEPATH",
    "PATHEXT",
    "COMSPEC",
    "SYSTEMROOT",
    "TAR_OPTIONS",
    "TAPE",
    "GZIP",
    "BZIP2",
    "XZ_OPT",
    "XZ_DEFAULTS",
    "ZSTD_CLEVEL",
    "UNZIP",
    "UNZIPOPT",
    "ZIPOPT",
    "RSYNC_RSH",
    "RSYNC_PASSWORD",
    "RSH",
    "POSIXLY_CORRECT",
    "GREP_OPTIONS",
    "GREP_COLOR",
    "VIM",
    "VIMINIT",
    "VIMRUNTIME",
    "EXINIT",
    "MYVIMRC",
    "NVIM_APPNAME",
    "NVIM",
    "EMACSLOADPATH",
    "EMACSDATA",
    "EMACSPATH",
    "EMACS",
    "ALTERNATE_EDITOR",
    "NANORC",
    "SCREENRC",
    "SYSSCREENRC",
    "TMUX",
    "TMUX_TMPDIR",
    "PGSERVICEFILE",
    "PGSYSCONFDIR",
    "PGPASSFILE",
    "PSQLRC",
    "PSQL_EDITOR",
    "PSQL_PAGER",
    "MYSQL_HOME",
    "MYSQL_TEST_LOGIN_FILE",
    "SQLITE_HISTORY",
    "REDISCLI_RCFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CA_BUNDLE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_LOGIN_CACHE_DIRECTORY",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SDK_LOAD_CONFIG",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "BOTO_CONFIG",
    "CLOUD_ML_REGION",
    "CHROME_PATH",
    "CHROME_BIN",
    "CHROME_DEVEL_SANDBOX",
    "SASS_BINARY_PATH",
    "SASS_BINARY_SITE",
    "TS_NODE_PROJECT",
    "TS_NODE_TRANSPILER",
    "TSX_TSCONFIG_PATH",
    "BABEL_CONFIG_FILE",
    "ESLINT_USE_FLAT_CONFIG_PATH",
    "IS_SANDBOX",
    "IS_DEMO",
    "DISABLE_INSTALLATION_CHECKS",
    "MCP_CLIENT_SECRET",
    "AUTOMODE_DECISION_LOG",
    "AI_AGENT",
    "DEBUG_AUTH",
    "CI",
    "CONTINUOUS_INTEGRATION",
    "SRT_DEBUG",
    "DO_NOT_SANDBOX",
    "NODE",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "QT_PLUGIN_PATH",
    "QT_QPA_PLATFORM_PLUGIN_PATH",
    "GTK_MODULES",
    "GTK_PATH",
    "GIO_EXTRA_MODULES",
    "GSETTINGS_BACKEND",
    "GDK_PIXBUF_MODULE_FILE",
    "GST_PLUGIN_PATH",
    "VK_LAYER_PATH",
    "VK_INSTANCE_LAYERS",
    "VK_ICD_FILENAMES",
    "LIBGL_DRIVERS_PATH",
    "OCL_ICD_VENDORS",
    "CUDA_INJECTION64_PATH",
    "PROJ_LIB",
    "GDAL_DRIVER_PATH",
    "MAGICK_CONFIGURE_PATH",
    "MAGICK_CODER_MODULE_PATH",
    "GS_LIB",
    "GS_OPTIONS",
];

#[cfg(test)]
mod tests {
    use super::dangerous;

    #[test]
    fn names_are_compared_without_case_and_by_prefix() {
        for name in [
            "http_proxy",
            "Ld_Preload",
            "anthropic_base_url",
            "npm_config_registry",
            "SAGE_X",
            "MY_HTTP_PROXY",
        ] {
            assert!(dangerous(name, "x"), "{name}");
        }
    }

    #[test]
    fn names_that_merely_contain_one_pass() {
        for name in [
            "APP_PATH_PREFIX",
            "DATABASE_URL",
            "NODE_ENV",
            "MY_LD_PRELOAD_NOTE",
            "HOMEPAGE",
            "PORT",
            "DEBUG",
            "AWS_REGION",
        ] {
            assert!(!dangerous(name, "x"), "{name}");
        }
    }

    #[test]
    fn a_model_name_passes_and_an_arn_does_not() {
        assert!(!dangerous("ANTHROPIC_MODEL", "claude-sonnet-4-5[1m]"));
        assert!(dangerous("ANTHROPIC_MODEL", "arn:aws:bedrock:us-east-1:1:inference-profile/x"));
    }

    #[test]
    fn names_no_shell_could_export_are_dangerous() {
        for name in ["", "A=B", "A B", "1A", "BASH_FUNC_ls%%", "A\u{1b}"] {
            assert!(dangerous(name, "x"), "{name:?}");
        }
    }
}
