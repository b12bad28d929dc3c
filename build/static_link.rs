//! Links the programs statically where the machine has the archives: a process that starts at every tool call, for every
//! text or for every command then starts without the dynamic loader. Elsewhere they are linked like any other; see
//! docs/adr/static-linking.md.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The programs of the package.
const PROGRAMS: [&str; 4] = ["jess", "jess-hook", "jess-check", "jess-run"];

/// Asks for the static linkage of [`PROGRAMS`].
///
/// The flag that asks rustc for this is one for all binaries, build scripts and macros, so the linker is asked instead:
/// for `-static`, and to take the names of the shared libraries that rustc gives it from a directory of scripts that
/// point at the archives.
pub fn link() {
    println!("cargo::rerun-if-env-changed=JESS_DYNAMIC");
    let var = |name: &str| env::var(name).unwrap_or_default();
    let gnu = var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ENV") == "gnu";
    let native = var("HOST") == var("TARGET");
    let asked = var("CARGO_CFG_TARGET_FEATURE").split(',').any(|f| f == "crt-static");
    if !gnu || !native || asked || env::var_os("JESS_DYNAMIC").is_some() {
        return;
    }
    let dir = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("static-link");
    if let Some(()) = archives(&dir, &var("RUSTC_LINKER")) {
        for program in PROGRAMS {
            println!("cargo::rustc-link-arg-bin={program}=-L{}", dir.display());
            println!("cargo::rustc-link-arg-bin={program}=-static");
            println!("cargo::rustc-link-arg-bin={program}=-no-pie");
        }
    }
}

/// Fills `dir`; `None` where an archive is missing or a program linked so does not run.
fn archives(dir: &Path, linker: &str) -> Option<()> {
    let linker = if linker.is_empty() { "cc" } else { linker };
    let find = |name: &str| {
        let out = Command::new(linker).arg(format!("-print-file-name={name}")).output().ok()?;
        let path = String::from_utf8(out.stdout).ok()?.trim().to_owned();
        Path::new(&path).is_absolute().then_some(path)
    };
    let unwind = find("libgcc_eh.a")?;
    fs::create_dir_all(dir).ok()?;
    fs::write(dir.join("libgcc_s.a"), format!("INPUT({unwind})\n")).ok()?;
    for name in ["c", "m", "rt", "pthread", "util", "dl"] {
        let file = format!("lib{name}.a");
        let archive = find(&file)?;
        fs::write(dir.join(&file), format!("INPUT({archive})\n")).ok()?;
    }
    let source = dir.join("trial.c");
    let program = dir.join("trial");
    fs::write(
        &source,
        "int _Unwind_Backtrace(int (*)(void *, void *), void *);\n\
         static int none(void *c, void *d) { (void)c; (void)d; return 0; }\n\
         int main(void) { _Unwind_Backtrace(none, 0); return 7; }\n",
    )
    .ok()?;
    let linked = Command::new(linker)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .args(["-fPIE", "-pie", "-Wl,-Bdynamic", "-lgcc_s", "-lc"])
        .arg(format!("-L{}", dir.display()))
        .args(["-static", "-no-pie"])
        .output()
        .ok()?;
    (linked.status.success() && Command::new(&program).status().ok()?.code() == Some(7)).then_some(())
}
