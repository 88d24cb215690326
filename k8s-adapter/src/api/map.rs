//! A small map with text keys, as labels, annotations and resource lists are.

use std::{fmt, marker::PhantomData};

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// Entries sorted by key. A sorted vector: most have fewer than ten entries, a dump has a million of
/// them, and a tree would cost half a kilobyte each. A key given twice is refused when read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringMap<V>(Vec<(Box<str>, V)>);

impl<V> Default for StringMap<V> {
    fn default() -> Self {
        StringMap(Vec::new())
    }
}

impl<V> StringMap<V> {
    /// The value under `key`. Logarithmic.
    pub fn get(&self, key: &str) -> Option<&V> {
        let position = self.position(key).ok()?;
        self.0.get(position).map(|(_, value)| value)
    }

    /// Whether there is a value under `key`. Logarithmic.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_ok()
    }

    /// Sets the value under `key` and gives back the old one. Linear.
    pub fn insert(&mut self, key: impl Into<Box<str>>, value: V) -> Option<V> {
        let key = key.into();
        match self.position(&key) {
            Ok(position) => Some(std::mem::replace(&mut self.0[position].1, value)),
            Err(position) => {
                self.0.insert(position, (key, value));
                None
            }
        }
    }

    /// All entries, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(held, _)| (**held).cmp(key))
    }
}

/// Of entries with the same key the last one stays.
impl<K: Into<Box<str>>, V> FromIterator<(K, V)> for StringMap<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = StringMap::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// As for the API server, `null` instead of the map means empty, `null` instead of a value means the
/// value's default.
impl<'de, V: Deserialize<'de> + Default> Deserialize<'de> for StringMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(EntriesVisitor::new(None))
    }
}

impl<'de, V: Deserialize<'de> + Default> StringMap<V> {
    /// Reads a map and passes over one key, without keeping its value.
    pub(super) fn deserialize_without<D: Deserializer<'de>>(
        deserializer: D,
        key: &'static str,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_option(EntriesVisitor::new(Some(key)))
    }
}

struct EntriesVisitor<V> {
    passed_over: Option<&'static str>,
    values: PhantomData<V>,
}

impl<V> EntriesVisitor<V> {
    fn new(passed_over: Option<&'static str>) -> Self {
        EntriesVisitor {
            passed_over,
            values: PhantomData,
        }
    }
}

impl<'de, V: Deserialize<'de> + Default> Visitor<'de> for EntriesVisitor<V> {
    type Value = StringMap<V>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map with text keys")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(StringMap::default())
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(StringMap::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut entries: Vec<(Box<str>, V)> = Vec::new();
        while let Some(key) = access.next_key::<Box<str>>()? {
            if self.passed_over == Some(&*key) {
                access.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = access.next_value::<Option<V>>()?.unwrap_or_default();
            entries.push((key, value));
        }
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        entries.shrink_to_fit();
        match entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(A::Error::custom(format_args!(
                "key `{}` is given twice; accepted: each key once",
                pair[0].0
            ))),
            None => Ok(StringMap(entries)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Labels = StringMap<Box<str>>;

    #[test]
    fn entries_are_found_whatever_their_order_and_null_is_empty() {
        let labels: Labels = serde_json::from_str(r#"{"b": "2", "a": "1", "c": null}"#).unwrap();
        assert_eq!(labels.get("a").map(|value| &**value), Some("1"));
        assert_eq!(labels.get("c").map(|value| &**value), Some(""));
        assert!(!labels.contains_key("d"));
        let keys: Vec<&str> = labels.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        assert!(serde_json::from_str::<Labels>("null").unwrap().is_empty());
        let labels: Labels = serde_saphyr::from_str("b: '2'\na: x\n").unwrap();
        assert_eq!(labels.len(), 2);
    }

    #[test]
    fn a_key_given_twice_is_refused_by_name() {
        let error = serde_json::from_str::<Labels>(r#"{"app": "x", "b": "", "app": "y"}"#);
        let message = error.unwrap_err().to_string();
        assert!(message.contains("key `app` is given twice"), "{message}");
    }

    #[test]
    fn insert_replaces_and_keeps_the_order() {
        let mut labels: Labels = [("b", "1".into()), ("a", "2".into())].into_iter().collect();
        assert_eq!(labels.insert("b", "3".into()).as_deref(), Some("1"));
        let entries: Vec<_> = labels.iter().map(|(key, value)| (key, &**value)).collect();
        assert_eq!(entries, [("a", "2"), ("b", "3")]);
    }
}
