//! Values of profiles: sizes, times, limits that may be lifted, and lists that may be a single value.

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::ffi::OsString;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

/// Bytes. In text: a number, with K, M, G or T for powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("{text:?} is no size: give bytes, or a number with K, M, G or T");
        let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
            Some(b'K') => (text.get(..text.len() - 1), 10),
            Some(b'M') => (text.get(..text.len() - 1), 20),
            Some(b'G') => (text.get(..text.len() - 1), 30),
            Some(b'T') => (text.get(..text.len() - 1), 40),
            _ => (Some(text), 0),
        };
        let number: u64 = digits.and_then(|d| d.parse().ok()).ok_or_else(wrong)?;
        number.checked_mul(1 << shift).filter(|n| *n <= i64::MAX as u64).map(Size).ok_or_else(wrong)
    }
}

impl From<u64> for Size {
    fn from(bytes: u64) -> Size {
        Size(bytes)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// A time of at most a year, above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(pub Duration);

impl Seconds {
    fn new(seconds: f64) -> Result<Seconds, String> {
        Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|d| !d.is_zero() && *d <= Duration::from_secs(366 * 86400))
            .map(Seconds)
            .ok_or_else(|| "must be above 0 and at most a year".to_owned())
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seconds, String> {
        Seconds::new(text.parse().map_err(|_| "not a number of seconds".to_owned())?)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_secs_f64())
    }
}

/// A share of processor time, in processors: 0.01 to 10,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpus {
    /// In hundredths of a processor.
    pub percent: u32,
}

impl Cpus {
    fn new(processors: f64) -> Result<Cpus, String> {
        let percent = (processors * 100.0).round();
        if (1.0..=1_000_000.0).contains(&percent) {
            Ok(Cpus { percent: percent as u32 })
        } else {
            Err("must be a number of processors from 0.01 to 10000".to_owned())
        }
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Cpus, String> {
        Cpus::new(text.parse().map_err(|_| "not a number of processors".to_owned())?)
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.percent) / 100.0)
    }
}

/// A limit, or `none` for no limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound<T> {
    /// At most this.
    At(T),
    /// What jess itself was started with.
    None,
}

impl<T> Bound<T> {
    /// The limit, if there is one.
    pub fn as_ref(&self) -> Option<&T> {
        match self {
            Bound::At(value) => Some(value),
            Bound::None => None,
        }
    }
}

impl<T: FromStr> FromStr for Bound<T>
where
    T::Err: fmt::Display,
{
    type Err = String;

    fn from_str(text: &str) -> Result<Bound<T>, String> {
        if text == "none" {
            return Ok(Bound::None);
        }
        text.parse().map(Bound::At).map_err(|e: T::Err| format!("{e} (or `none`)"))
    }
}

impl<T: Serialize> Serialize for Bound<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Bound::At(value) => value.serialize(serializer),
            Bound::None => serializer.serialize_str("none"),
        }
    }
}

/// Reads a number as [`FromNumber`] says, and a string by [`FromStr`].
struct NumberOrText<T>(&'static str, PhantomData<T>);

/// How a number becomes the value.
trait FromNumber: Sized {
    fn from_number(number: f64) -> Result<Self, String>;
}

impl FromNumber for Size {
    fn from_number(number: f64) -> Result<Self, String> {
        u64::from_number(number).map(Size)
    }
}

impl FromNumber for Seconds {
    fn from_number(number: f64) -> Result<Self, String> {
        Seconds::new(number)
    }
}

impl FromNumber for Cpus {
    fn from_number(number: f64) -> Result<Self, String> {
        Cpus::new(number)
    }
}

impl FromNumber for u64 {
    fn from_number(number: f64) -> Result<Self, String> {
        // Above 2^53 a float is no exact count.
        if number >= 0.0 && number.fract() == 0.0 && number < 9.0e15 {
            Ok(number as u64)
        } else {
            Err(format!("{number} is not a whole number that can be a limit"))
        }
    }
}

impl<T: FromNumber> FromNumber for Bound<T> {
    fn from_number(number: f64) -> Result<Self, String> {
        T::from_number(number).map(Bound::At)
    }
}

impl<T> Visitor<'_> for NumberOrText<T>
where
    T: FromNumber + FromStr,
    T::Err: fmt::Display,
{
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        T::from_number(number as f64).map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        T::from_number(number as f64).map_err(E::custom)
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        T::from_number(number).map_err(E::custom)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! read_by {
    ($($type:ty: $what:literal;)+) => {
        $(impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(NumberOrText($what, PhantomData))
            }
        })+
    };
}

read_by! {
    Size: "a size: bytes, or a text like \"64M\"";
    Seconds: "a number of seconds";
    Bound<Size>: "a size, or \"none\"";
    Bound<Seconds>: "a number of seconds, or \"none\"";
    Bound<u64>: "a number, or \"none\"";
    Bound<Cpus>: "a number of processors, or \"none\"";
}

/// A list that may be written as its only value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> OneOrMany<T> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany(Vec::new())
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OneOrMany<String> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = OneOrMany<String>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a name or a list of names")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(OneOrMany(vec![name.to_owned()]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(OneOrMany(names))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Reads a list of texts.
pub(super) fn strings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OsString>, D::Error> {
    Vec::<String>::deserialize(deserializer).map(|list| list.into_iter().map(OsString::from).collect())
}

/// Writes a list of texts; what is no UTF-8 is written with replacement characters.
pub(super) fn lossy<S: Serializer>(list: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(list.iter().map(|s| s.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_and_bounded() {
        let size = |text: &str| text.parse::<Size>().map(|s| s.0);
        assert_eq!(size("17"), Ok(17));
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        for wrong in ["", "M", "-1", "1.5G", "1X", "ß", "99999999999T", "9223372036854775808"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_above_zero_and_at_most_a_year() {
        assert_eq!("0.5".parse::<Seconds>().map(|s| s.0), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "inf", "1e9", "x"] {
            assert!(wrong.parse::<Seconds>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_can_be_lifted_by_name() {
        assert_eq!("none".parse::<Bound<Size>>(), Ok(Bound::None));
        assert_eq!("4".parse::<Bound<u64>>(), Ok(Bound::At(4)));
        assert!("few".parse::<Bound<u64>>().is_err());
    }
}
