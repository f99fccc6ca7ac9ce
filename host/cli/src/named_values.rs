//! Arguments whose values have names, such as the state of a queue. Other crates define these values.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns a parser for the values of these names.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    named: [(T, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    let names = named.map(|(_, name)| name);
    PossibleValuesParser::new(names).try_map(move |word| {
        let found = named.iter().find(|(_, name)| *name == word);
        found.map(|(value, _)| *value).ok_or("unknown name")
    })
}
