//! Reader of a `crawler-beans.cxml`: classes, properties, and the overrides in separate texts.

use std::collections::{BTreeMap, BTreeSet};

use encoding_rs::UTF_8;
use java_properties::PropertiesIter;
use roxmltree::{Document, Node, ParsingOptions};

/// Deepest nesting of beans that is read.
const DEPTH_MAX: usize = 16;

/// Most nodes of a file.
const NODES_MAX: u32 = 500_000;

/// A bean.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bean {
    /// Its id, by which other beans refer to it; empty for a nested bean.
    pub(crate) id: String,
    /// Its class without the package.
    pub(crate) class: String,
    /// Its line in the file.
    pub(crate) line: usize,
    /// Its byte offset in the file, which is unique.
    start: usize,
    /// Its properties.
    pub(crate) properties: BTreeMap<String, Property>,
}

/// A property of a bean.
#[derive(Debug, Clone)]
pub(crate) enum Property {
    /// A text.
    Text(String),
    /// Values, beans and references, in order.
    List(Vec<Property>),
    /// Texts by key.
    Map(Vec<(String, String)>),
    /// A nested bean.
    Bean(Box<Bean>),
    /// Another bean, by its id.
    Reference(String),
}

/// All beans of a file.
#[derive(Debug, Default)]
pub(crate) struct Beans {
    /// Top-level beans, in order.
    pub(crate) list: Vec<Bean>,
    /// Overrides without a bean: their line in the file, and the problem.
    pub(crate) unmatched_overrides: Vec<(usize, String)>,
    /// Properties that have been converted: offset of the bean, and name of the property.
    used: BTreeSet<(usize, String)>,
}

impl Beans {
    /// Reads a file. Nothing is loaded from elsewhere.
    pub(crate) fn read(xml: &str) -> Result<Self, String> {
        let options = ParsingOptions {
            allow_dtd: true,
            nodes_limit: NODES_MAX,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(xml, options)
            .map_err(|problem| format!("not XML: {problem}"))?;
        let root = document.root_element();
        if root.tag_name().name() != "beans" {
            return Err(format!(
                "not a crawler-beans.cxml: its root is <{}>, not <beans>",
                root.tag_name().name()
            ));
        }
        let mut beans = Self::default();
        for node in elements(root).filter(|node| node.tag_name().name() == "bean") {
            beans.list.push(bean(node, 0));
        }
        beans.apply_overrides();
        Ok(beans)
    }

    /// The beans of one of these classes.
    pub(crate) fn of_class<'b>(&'b self, classes: &'b [&str]) -> impl Iterator<Item = &'b Bean> {
        let is_one = move |bean: &&Bean| classes.contains(&bean.class.as_str());
        self.list.iter().filter(is_one)
    }

    /// The bean that a property contains or refers to.
    pub(crate) fn target<'b>(&'b self, property: &'b Property) -> Option<&'b Bean> {
        match property {
            Property::Bean(bean) => Some(bean),
            Property::Reference(id) => self.by_id(id),
            _ => None,
        }
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<&Bean> {
        self.list.iter().find(|bean| bean.id == id)
    }

    /// Takes a property, which then counts as converted.
    pub(crate) fn take<'b>(&mut self, bean: &'b Bean, name: &str) -> Option<&'b Property> {
        let property = bean.properties.get(name)?;
        self.used.insert((bean.start, name.to_owned()));
        Some(property)
    }

    /// Properties that were not converted.
    pub(crate) fn unused<'b>(&self, bean: &'b Bean) -> Vec<(&'b String, &'b Property)> {
        let is_unused =
            |(name, _): &(&String, &Property)| !self.used.contains(&(bean.start, (*name).clone()));
        bean.properties.iter().filter(is_unused).collect()
    }

    /// Applies `bean.property=value` lines and `props`, which override the beans' own properties.
    fn apply_overrides(&mut self) {
        let mut overrides: Vec<(usize, String, String)> = Vec::new();
        for bean in &self.list {
            if bean.class != "PropertyOverrideConfigurer" {
                continue;
            }
            let settings = match bean.properties.get("properties") {
                Some(Property::Text(text)) => lines_of(text).unwrap_or_else(|problem| {
                    self.unmatched_overrides.push((bean.line, problem));
                    Vec::new()
                }),
                Some(Property::Map(map)) => map.clone(),
                _ => Vec::new(),
            };
            let settings = settings.into_iter();
            overrides.extend(settings.map(|(path, value)| (bean.line, path, value)));
        }
        self.list
            .retain(|bean| bean.class != "PropertyOverrideConfigurer");
        for (line, path, value) in overrides {
            let (id, rest) = path.split_once('.').unwrap_or((&path, ""));
            let bean = self.list.iter_mut().find(|bean| bean.id == id);
            let is_set =
                bean.is_some_and(|bean| !rest.is_empty() && set(bean, rest, value.clone()));
            if !is_set {
                let problem =
                    format!("{path} = {value:?}: there is no such bean or property to set");
                self.unmatched_overrides.push((line, problem));
            }
        }
    }
}

impl Property {
    /// The items of a list, or this single value.
    fn items(&self) -> &[Property] {
        match self {
            Property::List(items) => items,
            one => std::slice::from_ref(one),
        }
    }

    /// The texts in it.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |item: &Property| match item {
            Property::Text(text) => Some(text.trim().to_owned()),
            _ => None,
        };
        self.items().iter().filter_map(text).collect()
    }

    /// The nested beans, without those it refers to.
    pub(crate) fn within(&self) -> impl Iterator<Item = &Bean> {
        self.items().iter().filter_map(|item| match item {
            Property::Bean(bean) => Some(&**bean),
            _ => None,
        })
    }
}

impl Bean {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.properties.get(name)? {
            Property::Text(text) => Some(text.trim()),
            _ => None,
        }
    }

    /// A name by which people find the bean in the file.
    pub(crate) fn name(&self) -> String {
        match self.id.as_str() {
            "" => self.class.clone(),
            id => format!("{id} ({})", self.class),
        }
    }
}

/// Sets a property, or with `textSource.value` a property of the nested bean. Returns whether that bean exists.
fn set(bean: &mut Bean, path: &str, value: String) -> bool {
    match path.split_once('.') {
        None => {
            bean.properties
                .insert(path.to_owned(), Property::Text(value));
            true
        }
        Some((property, rest)) => match bean.properties.get_mut(property) {
            Some(Property::Bean(inner)) => set(inner, rest, value),
            _ => false,
        },
    }
}

/// Reads properties as Java does, with continued lines, `:` for `=`, and escapes.
fn lines_of(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut settings = Vec::new();
    PropertiesIter::new_with_encoding(text.as_bytes(), UTF_8)
        .read_into(|key, value| settings.push((key, value.trim_end().to_owned())))
        .map_err(|problem| format!("its properties cannot be read: {problem}"))?;
    Ok(settings)
}

fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

fn bean(node: Node<'_, '_>, depth: usize) -> Bean {
    let class = node.attribute("class").unwrap_or_default();
    let mut bean = Bean {
        id: node
            .attribute("id")
            .or_else(|| node.attribute("name"))
            .unwrap_or_default()
            .to_owned(),
        class: class
            .rsplit(['.', '$'])
            .next()
            .unwrap_or_default()
            .to_owned(),
        line: node.document().text_pos_at(node.range().start).row as usize,
        start: node.range().start,
        properties: BTreeMap::new(),
    };
    if depth > DEPTH_MAX {
        return bean;
    }
    // The form `p:name="value"` of properties.
    for attribute in node.attributes() {
        if attribute
            .namespace()
            .is_some_and(|space| space.ends_with("/schema/p"))
        {
            let (name, value) = (attribute.name(), attribute.value().to_owned());
            let property = match name.strip_suffix("-ref") {
                Some(name) => (name.to_owned(), Property::Reference(value)),
                None => (name.to_owned(), Property::Text(value)),
            };
            bean.properties.insert(property.0, property.1);
        }
    }
    for inner in elements(node).filter(|inner| inner.tag_name().name() == "property") {
        let Some(name) = inner.attribute("name") else {
            continue;
        };
        let property = if let Some(value) = inner.attribute("value") {
            Some(Property::Text(value.to_owned()))
        } else if let Some(id) = inner.attribute("ref") {
            Some(Property::Reference(id.to_owned()))
        } else {
            elements(inner).next().and_then(|inner| value(inner, depth))
        };
        if let Some(property) = property {
            bean.properties.insert(name.to_owned(), property);
        }
    }
    bean
}

fn value(node: Node<'_, '_>, depth: usize) -> Option<Property> {
    let text = || node.text().unwrap_or_default().to_owned();
    Some(match node.tag_name().name() {
        "value" => Property::Text(text()),
        "bean" => Property::Bean(Box::new(bean(node, depth + 1))),
        "ref" => Property::Reference(node.attribute("bean")?.to_owned()),
        "list" | "set" | "array" if depth < DEPTH_MAX => Property::List(
            elements(node)
                .filter_map(|inner| value(inner, depth + 1))
                .collect(),
        ),
        "props" => Property::Map(
            elements(node)
                .filter_map(|prop| {
                    let value = prop.text().unwrap_or_default().to_owned();
                    Some((prop.attribute("key")?.to_owned(), value))
                })
                .collect(),
        ),
        "map" => Property::Map(
            elements(node)
                .filter_map(|entry| {
                    let inner = || {
                        let inner = elements(entry).next()?;
                        // For a bean its class: it cannot be converted, but must not be ignored.
                        let text = inner.attribute("class").or_else(|| inner.text());
                        Some(text?.to_owned())
                    };
                    let value = entry.attribute("value").map(str::to_owned);
                    Some((entry.attribute("key")?.to_owned(), value.or_else(inner)?))
                })
                .collect(),
        ),
        _ => return None,
    })
}
