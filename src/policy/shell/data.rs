//! Databases, and programs with a way out to a shell.

use super::eval::Machine;
use super::value::Val;

impl Machine<'_> {
    pub(super) fn databases(&mut self, base: &str, args: &[Val], stdin: &Val) -> bool {
        if !matches!(
            base,
            "psql"
                | "mysql"
                | "mariadb"
                | "sqlite3"
                | "sqlite"
                | "mongo"
                | "mongosh"
                | "redis-cli"
                | "cqlsh"
                | "sqlcmd"
                | "sqlplus"
                | "clickhouse-client"
                | "duckdb"
                | "dropdb"
                | "dropuser"
                | "mysqladmin"
                | "pg_dump"
                | "pg_dumpall"
                | "mysqldump"
                | "bq"
                | "snowsql"
                | "usql"
                | "influx"
                | "mongodump"
                | "cockroach"
                | "valkey-cli"
                | "pgcli"
                | "mycli"
                | "litecli"
                | "createuser"
                | "rails"
                | "rake"
                | "prisma"
                | "alembic"
                | "sequelize"
                | "knex"
                | "artisan"
                | "manage.py"
                | "etcdctl"
                | "mongorestore"
                | "pg_restore"
        ) {
            return false;
        }
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        if matches!(base, "dropdb" | "dropuser")
            || base == "mysqladmin" && text.contains(&"drop")
            || text.iter().any(|t| {
                matches!(
                    *t,
                    "db:drop"
                        | "db:reset"
                        | "db:migrate:reset"
                        | "db:schema:load"
                        | "migrate:fresh"
                        | "migrate:reset"
                        | "flush"
                        | "db:wipe"
                        | "db:purge"
                )
            })
            || base == "prisma" && text.iter().any(|t| *t == "reset" || *t == "--force-reset")
            || base == "etcdctl" && text.contains(&"del")
            || base == "pg_restore" && text.contains(&"--clean")
            || base == "mongorestore" && text.contains(&"--drop")
        {
            self.ask("destroy.data", format!("{base} would delete data. A person has to agree."));
        }
        let mut lines: Vec<Val> = args.to_vec();
        lines.push(stdin.clone());
        for a in &lines {
            if destructive_sql(&a.text) {
                self.ask("destroy.data", "The statement destroys data. A person has to agree.");
            }
            for start in ["\\!", ".shell ", ".system ", "system ", ".sh "] {
                for (at, _) in a.text.match_indices(start).take(4) {
                    if at == 0 || a.text[..at].ends_with(['\n', ';', ' ']) {
                        let line = a.text[at + start.len()..].lines().next().unwrap_or_default().to_owned();
                        self.program(line.trim(), &Val::default());
                    }
                }
            }
            let upper = a.text.to_uppercase();
            if upper.contains("TO PROGRAM")
                || upper.contains("FROM PROGRAM")
                || upper.contains("XP_CMDSHELL")
                || upper.contains("INTO OUTFILE")
                || upper.contains("SYS_EXEC")
            {
                self.ask("run.database", "The statement makes the database run a program or write a file.");
                if let Some(line) = a.text.split('\'').nth(1) {
                    let line = line.to_owned();
                    self.program(&line, &Val::default());
                }
            }
            for word in a
                .text
                .split(['\'', '"', ' ', '(', ')', ',', '\n', '='])
                .filter(|w| w.len() > 1 && w.len() < 512)
                .take(64)
            {
                let file = Val::known(word.trim_start_matches('@'));
                if self.meanings(&file).iter().any(|p| self.is_secret(p).is_some()) {
                    self.read_file(&file);
                }
            }
        }
        true
    }

    /// Editors, pagers and others that can be told to run a command or read a file.
    pub(super) fn escapes(&mut self, base: &str, args: &[Val], stdin: &Val) {
        let commands: Vec<(usize, &str)> =
            args.iter().enumerate().map(|(i, a)| (i, a.text.as_str())).collect();
        match base {
            "vim" | "vi" | "nvim" | "ex" | "view" | "ed" | "nano" | "emacs" | "less" | "more" | "most"
            | "man" | "gvim" | "vimdiff" | "kak" | "hx" | "micro" => {
                for (i, t) in &commands {
                    let value = args.get(i + 1).map(|v| v.text.clone()).unwrap_or_default();
                    let line = match *t {
                        "-c" | "--cmd" | "-e" | "--eval" | "--execute" => value,
                        "-P" | "--pager" if base == "man" => {
                            self.program(&value, &Val::default());
                            continue;
                        }
                        t if t.starts_with("+") => t[1..].to_owned(),
                        _ => continue,
                    };
                    let plain = line.trim_start_matches(':');
                    if let Some(at) = plain.find('!')
                        && (plain.starts_with('!')
                            || plain.starts_with("r !")
                            || plain.starts_with("read !")
                            || plain.starts_with("w !")
                            || plain.starts_with("%!")
                            || plain.starts_with("silent !")
                            || plain.starts_with("term"))
                    {
                        let command = plain[at + 1..].to_owned();
                        self.program(&command, stdin);
                    }
                    for start in ["r ", "read ", "e ", "edit ", "tabe ", "sp ", "source ", "so "] {
                        if let Some(file) = plain.strip_prefix(start) {
                            self.read_file(&Val::known(file.trim()));
                        }
                    }
                    for start in ["w ", "w! ", "write ", "saveas "] {
                        if let Some(file) = plain.strip_prefix(start).filter(|f| !f.starts_with('!')) {
                            self.write_file(&Val::known(file.trim()), true);
                        }
                    }
                    if plain.contains("system(")
                        || plain.contains("shell-command")
                        || plain.contains("call-process")
                        || plain.contains("jobstart(")
                    {
                        for piece in plain.split(['"', '\'']).skip(1).step_by(2) {
                            self.program(piece, &Val::default());
                        }
                    }
                    for piece in plain.split(['"', '\'']).skip(1).step_by(2) {
                        self.read_file(&Val::known(piece));
                    }
                }
                if base == "ed" || base == "ex" {
                    for line in stdin.text.lines() {
                        if let Some(command) = line.trim().strip_prefix('!') {
                            self.program(command, &Val::default());
                        } else if let Some(file) = line.strip_prefix("r ").or_else(|| line.strip_prefix("e "))
                        {
                            self.read_file(&Val::known(file));
                        } else if let Some(file) = line.strip_prefix("w ") {
                            self.write_file(&Val::known(file), true);
                        }
                    }
                }
            }
            "patch" => {
                for a in args {
                    if !a.text.starts_with('-') {
                        self.write_file(a, false);
                    }
                }
                for line in stdin.text.lines().take(2_000) {
                    if let Some(file) = line.strip_prefix("+++ ") {
                        let file = file.split('\t').next().unwrap_or_default();
                        let file = file.strip_prefix("b/").unwrap_or(file);
                        self.write_file(&Val::known(file), false);
                    }
                }
            }
            "sponge" => {
                for a in args {
                    self.write_file(a, true);
                }
            }
            "split" | "csplit" => {
                if let Some(a) = args.iter().find(|a| a.text.starts_with("--filter=")) {
                    let line = a.text[9..].to_owned();
                    self.program(&line, stdin);
                }
            }
            "entr"
            | "watchexec"
            | "nodemon"
            | "reflex"
            | "cargo-watch"
            | "concurrently"
            | "npm-run-all"
            | "foreman"
            | "honcho"
            | "start-server-and-test"
            | "wait-on" => {
                for a in args {
                    if a.text.contains(' ') {
                        let line = a.text.clone();
                        let before = self.found.clone();
                        self.program(&line, stdin);
                        if self.found.rule == "shell.syntax" {
                            self.found = before;
                        }
                    }
                }
                self.suffixes(args, stdin);
            }
            _ => {}
        }
    }
}

/// Whether a statement of SQL (or of a database's own language) destroys data.
pub fn destructive_sql(text: &str) -> bool {
    let upper = text.to_uppercase();
    let words: Vec<&str> =
        upper.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
    let pair = |a: &str, b: &[&str]| words.windows(2).any(|w| w[0] == a && b.contains(&w[1]));
    pair(
        "DROP",
        &["TABLE", "DATABASE", "SCHEMA", "COLLECTION", "USER", "INDEX", "VIEW", "KEYSPACE", "ROLE", "OWNED"],
    ) || words.contains(&"TRUNCATE")
        || upper.contains("DROPDATABASE")
        || upper.contains(".DROP(")
        || upper.contains("DELETEMANY({})")
        || upper.contains(".REMOVE({})")
        || words.iter().any(|w| matches!(*w, "FLUSHALL" | "FLUSHDB"))
        || upper.split(';').any(|s| {
            let w: Vec<&str> = s.split_whitespace().collect();
            (w.first() == Some(&"DELETE") && w.get(1) == Some(&"FROM")
                || w.first() == Some(&"UPDATE") && s.contains(" SET "))
                && !s.contains("WHERE")
        })
}
