//! Candidates of one call. Plugins read them by column. A column is built when it is first read, and then serves the whole stack.

use std::sync::{Arc, OnceLock};

use crate::Candidate;

impl Candidate {
    /// A seed, with nothing but its URI and its SURT form.
    #[must_use]
    pub fn seed(uri: String, surt: String) -> Candidate {
        Candidate {
            uri,
            surt,
            hop_path: String::new(),
            via: None,
            via_surt: None,
            context: String::new(),
            seed: true,
            source: None,
            address: None,
            attributes: Vec::new(),
        }
    }
}

/// All outlinks of a page, or other candidates of one call. Clones are the same candidates.
#[derive(Clone, Debug)]
pub struct Candidates(Arc<Batch>);

#[derive(Debug)]
struct Batch {
    list: Vec<Candidate>,
    columns: [OnceLock<String>; Column::ALL],
}

/// The columns of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Uris,
    Surts,
    HopPaths,
    Contexts,
    Vias,
    ViaSurts,
    Sources,
    Addresses,
}

impl Column {
    const ALL: usize = 8;

    fn of(self, candidate: &Candidate) -> &str {
        match self {
            Self::Uris => &candidate.uri,
            Self::Surts => &candidate.surt,
            Self::HopPaths => &candidate.hop_path,
            Self::Contexts => &candidate.context,
            Self::Vias => candidate.via.as_deref().unwrap_or_default(),
            Self::ViaSurts => candidate.via_surt.as_deref().unwrap_or_default(),
            Self::Sources => candidate.source.as_deref().unwrap_or_default(),
            Self::Addresses => candidate.address.as_deref().unwrap_or_default(),
        }
    }
}

impl Candidates {
    /// Makes a batch of candidates. A line feed in a value would end its line in a column, so it becomes a blank.
    pub fn new(mut list: Vec<Candidate>) -> Self {
        for candidate in &mut list {
            let optional = [
                &mut candidate.via,
                &mut candidate.via_surt,
                &mut candidate.source,
                &mut candidate.address,
            ];
            let texts = [
                &mut candidate.uri,
                &mut candidate.surt,
                &mut candidate.hop_path,
                &mut candidate.context,
            ];
            for text in texts
                .into_iter()
                .chain(optional.into_iter().flatten())
                .filter(|text| text.contains('\n'))
            {
                *text = text.replace('\n', " ");
            }
        }
        Self(Arc::new(Batch {
            list,
            columns: Default::default(),
        }))
    }

    /// Number of candidates.
    pub fn len(&self) -> usize {
        self.0.list.len()
    }

    /// Returns `true` if the batch is empty; then plugins are not called.
    pub fn is_empty(&self) -> bool {
        self.0.list.is_empty()
    }

    /// The candidate at this index, starting from 0.
    pub fn get(&self, index: usize) -> Option<&Candidate> {
        self.0.list.get(index)
    }

    /// Iterates over the candidates in the order given.
    pub fn iter(&self) -> std::slice::Iter<'_, Candidate> {
        self.0.list.iter()
    }

    /// All candidates.
    pub(crate) fn as_slice(&self) -> &[Candidate] {
        &self.0.list
    }

    /// A column: a line for each candidate, with a line feed after each.
    pub(crate) fn column(&self, column: Column) -> &str {
        self.0.columns[column as usize].get_or_init(|| {
            let lines = || self.iter().map(|candidate| column.of(candidate));
            let mut text = String::with_capacity(lines().map(|line| line.len() + 1).sum());
            for line in lines() {
                text.push_str(line);
                text.push('\n');
            }
            text
        })
    }
}

impl<'a> IntoIterator for &'a Candidates {
    type Item = &'a Candidate;
    type IntoIter = std::slice::Iter<'a, Candidate>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Vec<Candidate>> for Candidates {
    fn from(list: Vec<Candidate>) -> Self {
        Self::new(list)
    }
}

impl FromIterator<Candidate> for Candidates {
    fn from_iter<I: IntoIterator<Item = Candidate>>(list: I) -> Self {
        Self::new(list.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(uri: &str, context: &str, via: Option<&str>) -> Candidate {
        Candidate {
            uri: uri.to_owned(),
            surt: String::new(),
            hop_path: "L".to_owned(),
            via: via.map(str::to_owned),
            via_surt: None,
            context: context.to_owned(),
            seed: false,
            source: None,
            address: None,
            attributes: Vec::new(),
        }
    }

    #[test]
    fn a_column_has_one_line_for_each_candidate() {
        let candidates = Candidates::new(vec![
            candidate("http://a/", "a/@href", None),
            candidate("http://b/", "x\ny", Some("http://\n/")),
        ]);
        assert_eq!(candidates.column(Column::Uris), "http://a/\nhttp://b/\n");
        assert_eq!(candidates.column(Column::Contexts), "a/@href\nx y\n");
        assert_eq!(candidates.column(Column::Vias), "\nhttp:// /\n");
        assert_eq!(candidates.column(Column::Addresses), "\n\n");
        assert_eq!(candidates.get(1).unwrap().context, "x y");
        assert_eq!(Candidates::new(Vec::new()).column(Column::Uris), "");
    }
}
