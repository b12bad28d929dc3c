//! What tokens cost. The table is data, with its date and its source.

use serde::Deserialize;
use std::sync::LazyLock;

/// Prices of one model, in nanodollars a token. A price of 1 dollar for a million tokens is 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Price {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write_5m: u64,
    pub cache_write_1h: u64,
}

#[derive(Deserialize)]
struct Table {
    date: String,
    source: String,
    model: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    prefix: String,
    input: f64,
    output: f64,
    cache_read: f64,
}

static TABLE: LazyLock<Option<Table>> = LazyLock::new(|| toml::from_str(include_str!("prices.toml")).ok());

/// The day on which the table was read from its source, and the source.
pub fn source_of_prices() -> Option<(&'static str, &'static str)> {
    TABLE.as_ref().map(|t| (t.date.as_str(), t.source.as_str()))
}

impl Price {
    /// The price of `model`. A model that is not in the table costs what the dearest one costs.
    pub(super) fn of(model: &str) -> Price {
        let rows = TABLE.as_ref().map(|t| t.model.as_slice()).unwrap_or_default();
        // Bedrock and Vertex put a vendor in front: `anthropic.claude-…`, `us.anthropic.claude-…`.
        let name = model.find("claude-").and_then(|at| model.get(at..)).unwrap_or(model);
        let named = rows.iter().filter(|r| name.starts_with(&r.prefix)).max_by_key(|r| r.prefix.len());
        let dearest = || rows.iter().max_by(|a, b| a.output.total_cmp(&b.output));
        named.or_else(dearest).map_or(Price::UNKNOWN, Row::price)
    }

    const UNKNOWN: Price = Price {
        input: 15_000,
        output: 75_000,
        cache_read: 15_000,
        cache_write_5m: 30_000,
        cache_write_1h: 30_000,
    };
}

impl Row {
    fn price(&self) -> Price {
        let nano = |dollars: f64| (dollars * 1000.0).round() as u64;
        Price {
            input: nano(self.input),
            output: nano(self.output),
            cache_read: nano(self.cache_read),
            cache_write_5m: nano(self.input * 1.25),
            cache_write_1h: nano(self.input * 2.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_and_says_where_it_is_from() {
        let (date, source) = source_of_prices().expect("the table parses");
        assert!(date.len() == 10 && source.starts_with("https://"));
    }

    #[test]
    fn the_longest_prefix_decides() {
        assert_eq!(Price::of("claude-opus-5-5").output, 20_000);
        assert_eq!(Price::of("claude-opus-5-20260601").output, 25_000);
        assert_eq!(Price::of("claude-opus-4-1-20250805").output, 75_000);
        assert_eq!(Price::of("us.anthropic.claude-haiku-4-5-20251001-v1:0").input, 1_000);
    }

    #[test]
    fn an_unknown_model_is_charged_as_the_dearest() {
        assert_eq!(Price::of("something-new").output, 75_000);
    }
}
