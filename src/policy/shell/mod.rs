//! Commands: a bash program is parsed, its words are evaluated, every simple command in it is judged.
use super::{Decision, Scope, World};
/// temp
pub fn judge(_c: &str, _s: &Scope, _w: &dyn World) -> Decision {
    Decision::SILENT
}
/// temp
pub fn destructive_sql(_t: &str) -> bool {
    false
}
/// temp
pub fn seeks_secrets(_t: &str) -> bool {
    false
}
/// temp
pub fn glob_matches(_p: &str, _t: &str) -> bool {
    false
}
