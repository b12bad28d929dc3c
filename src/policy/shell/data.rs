//! Databases.

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
                        | "reset_db"
                        | "ecto.drop"
                        | "ecto.reset"
                        | "schema:drop"
                        | "pg:reset"
                        | "migrate:rollback"
                        | "doctrine:database:drop"
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
}

/// Whether a statement of SQL (or of a database's own language) destroys data.
pub fn destructive_sql(text: &str) -> bool {
    let upper = text.to_uppercase();
    let words: Vec<&str> =
        upper.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
    let pair = |a: &str, b: &[&str]| words.windows(2).any(|w| w[0] == a && b.contains(&w[1]));
    pair(
        "DROP",
        &[
            "TABLE",
            "DATABASE",
            "SCHEMA",
            "COLLECTION",
            "USER",
            "INDEX",
            "VIEW",
            "KEYSPACE",
            "ROLE",
            "OWNED",
            "TEMPORARY",
            "MATERIALIZED",
            "FUNCTION",
            "TYPE",
            "EXTENSION",
            "SEQUENCE",
            "PROCEDURE",
            "TRIGGER",
            "COLUMN",
            "TABLESPACE",
            "PUBLICATION",
            "DOMAIN",
        ],
    ) || words.contains(&"TRUNCATE")
        || upper.contains("DROPDATABASE")
        || upper.contains(".DROP(")
        || upper.contains("DELETEMANY({})")
        || upper.contains("DELETEMANY({ })")
        || upper.contains(".REMOVE({})")
        || words.iter().any(|w| matches!(*w, "FLUSHALL" | "FLUSHDB"))
        || upper.split(';').any(|s| {
            let w: Vec<&str> = s.split_whitespace().collect();
            let always = ["WHERE 1=1", "WHERE 1 = 1", "WHERE TRUE", "WHERE 1"]
                .iter()
                .any(|a| s.trim_end().ends_with(a));
            if s.contains("AS (DELETE FROM") || s.contains("AS ( DELETE FROM") {
                return true;
            }
            (w.first() == Some(&"DELETE") && w.get(1) == Some(&"FROM")
                || w.first() == Some(&"UPDATE") && s.contains(" SET "))
                && (!s.contains("WHERE") || always)
        })
}
