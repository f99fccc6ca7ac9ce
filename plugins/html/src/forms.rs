//! The `forms` extractor: the URIs that a page's forms would request if submitted unchanged.
//!
//! A GET form gives one URI from the entries of its controls and of its default button (HTML standard §4.10.22.4). A form with
//! a password is reported as a login and never submitted. POST forms are never submitted either. The `html` extractor reports
//! the bare `action`.

use std::borrow::Cow;

use opilio_plugin::prelude::*;

use crate::entities::decode;
use crate::foreign::ForeignContent;
use crate::names::NAME_BYTES_MAX;
use crate::page::{Syntax, lower, raw_text};
use crate::reference::{self, Reference};
use crate::tokenizer::{Attribute, Token, Tokenizer};

/// Most forms read from a page. Pages with more were not written for people.
const FORMS_MAX: usize = 200;

/// Most controls read from a page, and most options read from a control.
const CONTROLS_MAX: usize = 2_000;

/// Longest URI made from a form, in bytes: the common limit of servers.
const URI_BYTES_MAX: usize = 8 * 1024;

/// Settings of the `forms` extractor.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Whether to report the URIs that GET forms request. Without it only login forms are reported.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub submit: bool,
    /// Whether to submit forms whose text fields are all blank. Most of these are empty searches.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub blank: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            submit: true,
            blank: true,
        }
    }
}

/// The configured plugin.
#[derive(Clone, Copy, Debug)]
pub struct Forms {
    settings: Settings,
}

impl Plugin for Forms {
    const NAME: &'static str = "forms";
    const SUMMARY: &'static str =
        "URIs that GET forms request if submitted unchanged; login forms are reported";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self { settings })
    }

    fn handles() -> Handles {
        Handles::media_types(&[
            "text/html",
            "application/xhtml+xml",
            "application/xhtml",
            "application/vnd.wap.xhtml+xml",
        ])
    }
}

impl Extractor for Forms {
    fn extract(&self, document: &Document) -> Extraction {
        let text = document.text();
        let syntax = match document.media_type().as_str() {
            "application/xhtml+xml" | "application/vnd.wap.xhtml+xml" => Syntax::Xml,
            _ => Syntax::Html,
        };
        let charset = Charset::of(document.charset().as_deref());
        let mut links = Vec::new();
        for form in read(&text, syntax) {
            if let Some(password) = form.password() {
                report_login(document, &form, password);
            } else if self.settings.submit
                && let Some(uri) = form.submission_uri(charset, self.settings.blank)
            {
                let mut link = Link::new(uri, Hop::Submit, "form/@action");
                // A form without an action requests its own page, even if the page has another base.
                if form.target().0.is_empty() {
                    link.base = Some(document.uri());
                }
                links.push(link);
            }
        }
        Extraction::links(links)
    }
}

/// Reports a login form as an annotation, and as a note with its fields.
fn report_login(document: &Document, form: &Form<'_>, password: &Control<'_>) {
    let (action, method) = form.target();
    let user = form
        .controls
        .iter()
        .take_while(|control| !std::ptr::eq(*control, password))
        .filter(|control| control.is_text())
        .last()
        .map_or("", |control| control.name.as_ref());
    count("login-forms", 1);
    // Of several login forms, the first is the main one of the page.
    if document.note("login-form").is_some() {
        return;
    }
    document.annotate("login-form");
    document.set_note(
        "login-form",
        &format!(
            "{} {} user={user} password={}",
            method.to_ascii_uppercase(),
            if action.is_empty() {
                Cow::Owned(document.uri())
            } else {
                action
            },
            password.name
        ),
    );
}

/// A form with the controls that belong to it.
#[derive(Debug, Default)]
struct Form<'a> {
    id: Cow<'a, str>,
    action: Cow<'a, str>,
    method: Cow<'a, str>,
    /// Submitted without checking required fields.
    novalidate: bool,
    controls: Vec<Control<'a>>,
}

/// Kinds of controls, as far as they matter for submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Text fields, including `textarea`.
    Text,
    Password,
    Hidden,
    /// Check boxes and radio buttons.
    Checkable,
    Range,
    Select {
        multiple: bool,
    },
    /// Buttons that submit the form.
    Submit,
    Image,
    File,
    /// Controls submitted with their value.
    Other,
    /// Buttons that do not submit.
    Inert,
}

#[derive(Debug)]
struct Control<'a> {
    kind: Kind,
    name: Cow<'a, str>,
    value: Option<Cow<'a, str>>,
    /// The attribute `form`: id of the form that the control belongs to, anywhere on the page.
    form: Option<Cow<'a, str>>,
    checked: bool,
    disabled: bool,
    required: bool,
    options: Vec<Choice<'a>>,
    /// A button's override of the form's attribute.
    action: Option<Cow<'a, str>>,
    method: Option<Cow<'a, str>>,
    novalidate: bool,
}

/// An `option`.
#[derive(Debug)]
struct Choice<'a> {
    value: Cow<'a, str>,
    selected: bool,
    disabled: bool,
}

impl Control<'_> {
    fn is_text(&self) -> bool {
        self.kind == Kind::Text && !self.disabled
    }
}

impl<'a> Form<'a> {
    /// The first password field.
    fn password(&self) -> Option<&Control<'a>> {
        self.controls
            .iter()
            .find(|control| control.kind == Kind::Password && !control.disabled)
    }

    /// The default button: the first that submits the form.
    fn button(&self) -> Option<&Control<'a>> {
        self.controls
            .iter()
            .find(|control| matches!(control.kind, Kind::Submit | Kind::Image))
            .filter(|button| !button.disabled)
    }

    /// The action and the method: those of the default button, or else of the form.
    fn target(&self) -> (Cow<'a, str>, Cow<'a, str>) {
        let button = self.button();
        let action = button.and_then(|button| button.action.clone());
        let method = button.and_then(|button| button.method.clone());
        let method = method.unwrap_or_else(|| self.method.clone());
        let method = match method.trim().to_ascii_lowercase().as_str() {
            "post" => "post",
            "dialog" => "dialog",
            _ => "get",
        };
        (
            action.unwrap_or_else(|| self.action.clone()),
            Cow::Borrowed(method),
        )
    }

    /// The URI that submission requests. `None` if the method is not GET, the action is not a reference, a required field is
    /// empty, an entry cannot be encoded, or the URI is too long. `blank`: whether to submit forms without text.
    fn submission_uri(&self, charset: Charset, blank: bool) -> Option<String> {
        let (action, method) = self.target();
        if method != "get" || !self.is_submittable() || (!blank && self.is_blank()) {
            return None;
        }
        let action = match reference::reference(&action) {
            Reference::Link(action) => action,
            _ if reference::trim(&action).is_empty() => "",
            _ => return None,
        };
        // The entries replace the query.
        let path = &action[..action.find(['?', '#']).unwrap_or(action.len())];
        let mut uri = format!("{path}?");
        let mut is_first = true;
        for (name, value) in self.entries() {
            if !is_first {
                uri.push('&');
            }
            is_first = false;
            charset.encode(&name, &mut uri)?;
            uri.push('=');
            let value = if name == "_charset_" && value.is_empty() {
                Cow::Borrowed(charset.name())
            } else {
                value
            };
            charset.encode(&value, &mut uri)?;
            if uri.len() > URI_BYTES_MAX {
                return None;
            }
        }
        Some(uri)
    }

    /// Returns `true` if a browser would submit the form: no required field is empty.
    fn is_submittable(&self) -> bool {
        if self.novalidate || self.button().is_some_and(|button| button.novalidate) {
            return true;
        }
        let is_missing = |control: &Control<'_>| match control.kind {
            Kind::Text => control.value.as_ref().is_none_or(|value| value.is_empty()),
            Kind::Checkable => !control.checked,
            Kind::File => true,
            Kind::Select { .. } => control
                .choices()
                .next()
                .is_none_or(|choice| choice.value.is_empty()),
            _ => false,
        };
        !self.controls.iter().any(|control| {
            control.required
                && !control.disabled
                && is_missing(control)
                // One checked radio button of a group is enough.
                && !self.controls.iter().any(|other| {
                    control.kind == Kind::Checkable && other.name == control.name && other.checked
                })
        })
    }

    /// Returns `true` if the form has text fields and all are blank.
    fn is_blank(&self) -> bool {
        let mut texts = self.controls.iter().filter(|control| control.is_text());
        let mut has_text = false;
        texts.all(|control| {
            has_text = true;
            control
                .value
                .as_ref()
                .is_none_or(|value| value.trim().is_empty())
        }) && has_text
    }

    /// Names and values to submit, in document order.
    fn entries(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        let button = self.button();
        let mut entries = Vec::new();
        for control in &self.controls {
            let is_button = button.is_some_and(|button| std::ptr::eq(button, control));
            if control.disabled
                || control.kind == Kind::Inert
                || (matches!(control.kind, Kind::Submit | Kind::Image) && !is_button)
                || (control.kind == Kind::Checkable && !control.checked)
            {
                continue;
            }
            let name = Cow::Borrowed(control.name.as_ref());
            if control.kind == Kind::Image {
                // The coordinates of the click; a click by keyboard has 0 and 0.
                let dot = if name.is_empty() { "" } else { "." };
                for axis in ["x", "y"] {
                    entries.push((Cow::Owned(format!("{name}{dot}{axis}")), Cow::Borrowed("0")));
                }
                continue;
            }
            if name.is_empty() {
                continue;
            }
            if let Kind::Select { .. } = control.kind {
                for choice in control.choices() {
                    entries.push((name.clone(), Cow::Borrowed(choice.value.as_ref())));
                }
                continue;
            }
            let value = match (&control.value, control.kind) {
                (Some(value), Kind::Text) => {
                    Cow::Owned(value.replace("\r\n", "\n").replace('\n', "\r\n"))
                }
                (_, Kind::File) => Cow::Borrowed(""),
                (Some(value), _) => Cow::Borrowed(value.as_ref()),
                (None, Kind::Checkable) => Cow::Borrowed("on"),
                (None, Kind::Range) => Cow::Borrowed("50"),
                (None, _) => Cow::Borrowed(""),
            };
            entries.push((name, value));
        }
        entries
    }
}

impl<'a> Control<'a> {
    /// The submitted options: the selected ones, or the first of a menu without a selection.
    fn choices(&self) -> impl Iterator<Item = &Choice<'a>> {
        let multiple = self.kind == Kind::Select { multiple: true };
        let enabled = || self.options.iter().filter(|choice| !choice.disabled);
        // Of several selected options of a menu, the last counts.
        let sole = if multiple {
            None
        } else {
            enabled()
                .rfind(|choice| choice.selected)
                .or_else(|| enabled().next())
        };
        enabled()
            .filter(move |choice| multiple && choice.selected)
            .chain(sole)
    }
}

/// The forms of a page, with their controls.
fn read(text: &str, syntax: Syntax) -> Vec<Form<'_>> {
    let mut forms: Vec<Form<'_>> = Vec::new();
    // Controls, each with the index of the form that contains it.
    let mut controls: Vec<(Option<usize>, Control<'_>)> = Vec::new();
    let mut open = None;
    // The number of open field sets, and the numbers of the disabled ones. A disabled set disables its controls.
    let (mut open_sets, mut disabled_sets) = (0_usize, Vec::new());
    let (mut in_datalist, mut in_select) = (false, false);
    let mut tokenizer = Tokenizer::new(text, 0, text.len());
    let mut foreign = ForeignContent::default();
    let mut attributes = Vec::new();
    let mut buffer = [0; NAME_BYTES_MAX];
    while let Some(token) = tokenizer.next(&mut attributes, matters) {
        match token {
            Token::Start { name, self_closing } => {
                let element = lower(name, &mut buffer);
                let is_foreign = foreign.start(element, self_closing);
                tokenizer.foreign = foreign.inside() || syntax == Syntax::Xml;
                let tag = Tag(&attributes);
                let closed = self_closing && syntax == Syntax::Xml;
                let after = tokenizer.position();
                let content = match raw_text(element, is_foreign).filter(|_| !closed) {
                    Some(kind) => {
                        let (start, end) = tokenizer.raw_text(name, kind);
                        &text[start..end]
                    }
                    None => "",
                };
                match element {
                    // A form within a form is ignored.
                    "form" if open.is_none() && forms.len() < FORMS_MAX => {
                        open = Some(forms.len()).filter(|_| !closed);
                        forms.push(tag.form());
                    }
                    "fieldset" if !closed => {
                        open_sets += 1;
                        if tag.has("disabled") {
                            disabled_sets.push(open_sets);
                        }
                    }
                    "datalist" => in_datalist = !closed,
                    "option" if in_select && !in_datalist => {
                        if let Some((_, select)) = controls.last_mut()
                            && select.options.len() < CONTROLS_MAX
                        {
                            select.options.push(tag.choice(&text[after..]));
                        }
                    }
                    "input" | "button" | "select" | "textarea" if controls.len() < CONTROLS_MAX => {
                        let mut control = tag.control(element, content);
                        control.disabled |= !disabled_sets.is_empty();
                        in_select = element == "select" && !closed;
                        controls.push((open, control));
                    }
                    "input" | "button" | "select" | "textarea" => in_select = false,
                    _ => {}
                }
            }
            Token::End { name } => {
                let element = lower(name, &mut buffer);
                foreign.end(element);
                tokenizer.foreign = foreign.inside() || syntax == Syntax::Xml;
                match element {
                    "form" => open = None,
                    "select" => in_select = false,
                    "datalist" => in_datalist = false,
                    "fieldset" => {
                        disabled_sets.retain(|set| *set < open_sets);
                        open_sets = open_sets.saturating_sub(1);
                    }
                    _ => {}
                }
            }
            Token::Comment { .. } => {}
        }
    }
    for (enclosing_form, control) in controls {
        let owner = match &control.form {
            Some(id) => forms
                .iter()
                .position(|form| !id.is_empty() && form.id == *id),
            None => enclosing_form,
        };
        if let Some(form) = owner.and_then(|owner| forms.get_mut(owner)) {
            form.controls.push(control);
        }
    }
    forms
}

/// Returns `true` if an attribute with this name matters for forms and controls.
fn matters(name: &[u8]) -> bool {
    const NAMES: [&str; 17] = [
        "action",
        "checked",
        "disabled",
        "form",
        "formaction",
        "formmethod",
        "formnovalidate",
        "id",
        "max",
        "method",
        "min",
        "multiple",
        "name",
        "novalidate",
        "required",
        "selected",
        "type",
    ];
    name.eq_ignore_ascii_case(b"value")
        || NAMES
            .iter()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// The attributes of a start tag.
struct Tag<'t, 'a>(&'t [Attribute<'a>]);

impl<'a> Tag<'_, 'a> {
    fn raw(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find(|attribute| attribute.name.eq_ignore_ascii_case(name))
            .map(|attribute| attribute.value)
    }

    fn value(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).map(decode)
    }

    fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    fn form(&self) -> Form<'a> {
        Form {
            id: self.value("id").unwrap_or_default(),
            action: self.value("action").unwrap_or_default(),
            method: self.value("method").unwrap_or_default(),
            novalidate: self.has("novalidate"),
            controls: Vec::new(),
        }
    }

    /// Reads a control; `content` is the content of a `textarea`.
    fn control(&self, element: &str, content: &'a str) -> Control<'a> {
        let kind = self.raw("type").unwrap_or_default().trim();
        let kind = kind.to_ascii_lowercase();
        let mut value = self.value("value");
        let kind = match (element, kind.as_str()) {
            ("select", _) => Kind::Select {
                multiple: self.has("multiple"),
            },
            ("textarea", _) => {
                // The first line break does not belong to the text.
                let text = content.strip_prefix('\r').unwrap_or(content);
                value = Some(decode(text.strip_prefix('\n').unwrap_or(text)));
                Kind::Text
            }
            ("button", "reset" | "button" | "menu") | (_, "reset" | "button") => Kind::Inert,
            ("button", _) | (_, "submit") => Kind::Submit,
            (_, "image") => Kind::Image,
            (_, "hidden") => Kind::Hidden,
            (_, "password") => Kind::Password,
            (_, "checkbox" | "radio") => Kind::Checkable,
            (_, "file") => Kind::File,
            (_, "range") => {
                value = value.or_else(|| self.middle());
                Kind::Range
            }
            (_, "color") => {
                value = value.or(Some(Cow::Borrowed("#000000")));
                Kind::Other
            }
            _ => {
                // Single-line fields have no line breaks.
                value = value.map(|value| match value.contains(['\n', '\r']) {
                    true => Cow::Owned(value.replace(['\n', '\r'], "")),
                    false => value,
                });
                Kind::Text
            }
        };
        let is_button = matches!(kind, Kind::Submit | Kind::Image);
        Control {
            kind,
            name: self.value("name").unwrap_or_default(),
            value,
            form: self.value("form"),
            checked: self.has("checked"),
            disabled: self.has("disabled"),
            required: self.has("required"),
            options: Vec::new(),
            action: self.value("formaction").filter(|_| is_button),
            method: self.value("formmethod").filter(|_| is_button),
            novalidate: self.has("formnovalidate") && is_button,
        }
    }

    /// The initial value of a slider: the middle of its range.
    fn middle(&self) -> Option<Cow<'a, str>> {
        let bound = |name: &str, other: f64| {
            self.raw(name)
                .and_then(|value| value.trim().parse().ok())
                .filter(|value: &f64| value.is_finite())
                .unwrap_or(other)
        };
        let (min, max) = (bound("min", 0.0), bound("max", 100.0));
        // Rounded to the default step of 1.
        let middle = if max < min {
            min
        } else {
            min + ((max - min) / 2.0).round()
        };
        Some(Cow::Owned(middle.to_string()))
    }

    /// Reads an option; `after` is the text after the tag. Without a value, an option's text is its value.
    fn choice(&self, after: &'a str) -> Choice<'a> {
        /// Longest text of an option, in bytes.
        const TEXT_BYTES_MAX: usize = 1024;
        let value = self.value("value").unwrap_or_else(|| {
            let after = &after[..after.floor_char_boundary(TEXT_BYTES_MAX)];
            let text = decode(after.split('<').next().unwrap_or_default());
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            Cow::Owned(words.join(" "))
        });
        Choice {
            value,
            selected: self.has("selected"),
            disabled: self.has("disabled"),
        }
    }
}

/// The character encoding of a form, which is that of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charset {
    Utf8,
    /// ISO-8859-1 as browsers read it.
    Windows1252,
    /// Any other encoding. Only ASCII is encoded.
    Other,
}

impl Charset {
    fn of(label: Option<&str>) -> Self {
        match label.map(str::to_ascii_lowercase).as_deref() {
            None | Some("utf-8" | "utf8" | "us-ascii") => Self::Utf8,
            Some("windows-1252" | "iso-8859-1" | "latin1") => Self::Windows1252,
            // Browsers submit the forms of UTF-16 pages as UTF-8.
            Some("utf-16" | "utf-16le" | "utf-16be") => Self::Utf8,
            Some(_) => Self::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Utf8 | Self::Other => "UTF-8",
            Self::Windows1252 => "windows-1252",
        }
    }

    /// Appends a name or value, encoded as `application/x-www-form-urlencoded`; `None` if it cannot be encoded.
    fn encode(self, text: &str, uri: &mut String) -> Option<()> {
        for character in text.chars() {
            let mut buffer = [0; 4];
            let bytes = match (self, character) {
                (_, ' ') => {
                    uri.push('+');
                    continue;
                }
                (Self::Utf8, _) | (_, '\0'..='\x7F') => {
                    character.encode_utf8(&mut buffer).as_bytes()
                }
                (Self::Windows1252, '\u{A0}'..='\u{FF}') => {
                    buffer[0] = character as u32 as u8;
                    &buffer[..1]
                }
                _ => return None,
            };
            for &byte in bytes {
                if byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'-' | b'.' | b'_') {
                    uri.push(char::from(byte));
                } else {
                    uri.push('%');
                    for digit in [byte >> 4, byte & 15] {
                        uri.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opilio_plugin::testing::document;
    use proptest::prelude::*;

    use super::*;

    fn extract(settings: Settings, html: &str) -> Extraction {
        let document = document("http://e.org/a/b?c")
            .media_type("text/html")
            .text(html);
        Forms { settings }.extract(&document)
    }

    #[track_caller]
    fn check(html: &str, expected: &[&str]) {
        let extraction = extract(Settings::default(), html);
        let found: Vec<_> = extraction
            .links
            .iter()
            .map(|link| link.uri.as_str())
            .collect();
        assert_eq!(found, expected, "{html}");
    }

    #[test]
    fn controls_are_submitted_unchanged() {
        check(
            "<form action='/s?old=1#x'><input name=q value='a b&amp;c'><input type=hidden name=h value=é>\
             <input type=checkbox name=c checked><input type=checkbox name=d><input type=radio name=r value=1>\
             <input type=radio name=r value=2 checked><textarea name=t>\nx\ny</textarea><input name=off disabled>\
             <input value=nameless><input type=reset name=z><input type=file name=f></form>",
            &["/s?q=a+b%26c&h=%C3%A9&c=on&r=2&t=x%0D%0Ay&f="],
        );
        check(
            "<form action=s><select name=a><option>one<option selected value=2>two</select>\
             <select name=b><option disabled>no<option> first  one </option><option>c</select>\
             <select name=m multiple><option selected>x<option>y<option selected>z</select>\
             <input list=l name=n><datalist id=l><option>never</datalist>\
             <input type=range name=g min=10 max=20><input type=color name=k></form>",
            &["s?a=2&b=first+one&m=x&m=z&n=&g=15&k=%23000000"],
        );
        check(
            "<svg><title>Search</svg><form action=s><input name=q></form>",
            &["s?q="],
        );
    }

    #[test]
    fn the_default_button_is_submitted_and_may_override_the_target() {
        check(
            "<form action=/a><button type=button name=x value=1></button><button name=go value=1 formaction=/b>\
             </button><input type=submit name=other></form>",
            &["/b?go=1"],
        );
        check(
            "<form><input type=image name=i><input name=q></form>",
            &["?i.x=0&i.y=0&q="],
        );
        check(
            "<form method=post><input name=q><button formmethod=get></form>",
            &["?q="],
        );
    }

    #[test]
    fn a_form_without_an_action_requests_its_own_page() {
        let extraction = extract(
            Settings::default(),
            "<base href=http://b.org/><form><input name=q></form>",
        );
        assert_eq!(
            extraction.links[0].base.as_deref(),
            Some("http://e.org/a/b?c")
        );
    }

    #[test]
    fn controls_belong_to_the_form_around_them_or_the_one_they_name() {
        check(
            "<input name=early form=f><form id=f action=/f><input name=in></form><input name=stray>\
             <input name=late form=f><form action=/g><input name=y form=f><form action=/inner><input name=z></form>",
            &["/f?early=&in=&late=&y=", "/g?z="],
        );
        check(
            "<form action=/a><fieldset disabled><fieldset><input name=no></fieldset><input name=nor></fieldset>\
             <input name=yes></form>",
            &["/a?yes="],
        );
    }

    #[test]
    fn forms_that_browsers_would_not_submit_are_ignored() {
        check("<form action=/a><input name=q required></form>", &[]);
        check(
            "<form action=/a novalidate><input name=q required></form>",
            &["/a?q="],
        );
        check(
            "<form action=/a><input type=radio name=r value=1 required><input type=radio name=r value=2 checked></form>",
            &["/a?r=2"],
        );
        check("<form action=/a method=POST><input name=q></form>", &[]);
        check(
            "<form action=/a method=dialog></form><form action='javascript:x()'></form>",
            &[],
        );
        check("<form action='{{a}}'></form>", &[]);
        check(
            "<!-- <form action=/a> --><script>'<form action=/b>'</script>",
            &[],
        );
    }

    #[test]
    fn logins_are_reported_and_never_submitted() {
        let page = document("http://e.org/login").media_type("text/html").text(
            "<form action=/in method=post><input type=hidden name=t value=1><input name=log><input type=password name=pwd>\
             </form><form><input name=u><input type=password name=p></form>",
        );
        let plugin = Forms::new(Settings::default()).unwrap();
        assert_eq!(plugin.extract(&page).links, []);
        assert_eq!(
            page.note("login-form").as_deref(),
            Some("POST /in user=log password=pwd")
        );
        assert_eq!(page.annotations(), ["login-form"]);
    }

    #[test]
    fn forms_that_the_charset_cannot_encode_are_ignored() {
        let form = "<form action=/a><input name=q value='é'></form><form action=/b><input name=q value='ж'></form>";
        let links = |charset: &str| {
            let page = document("http://e.org/")
                .media_type("text/html")
                .charset(charset)
                .text(form);
            let extraction = Forms::new(Settings::default()).unwrap().extract(&page);
            extraction
                .links
                .into_iter()
                .map(|link| link.uri)
                .collect::<Vec<_>>()
        };
        assert_eq!(links("utf-8"), ["/a?q=%C3%A9", "/b?q=%D0%B6"]);
        assert_eq!(links("windows-1252"), ["/a?q=%E9"]);
        assert_eq!(links("koi8-r"), [""; 0]);
    }

    #[test]
    fn settings_apply() {
        let form = "<form action=/a><input name=q><input type=hidden name=h value=1></form><form action=/b></form>";
        let uris = |settings| {
            let extraction = extract(settings, form);
            extraction
                .links
                .into_iter()
                .map(|link| link.uri)
                .collect::<Vec<_>>()
        };
        assert_eq!(uris(Settings::default()), ["/a?q=&h=1", "/b?"]);
        let blank = Settings {
            blank: false,
            ..Settings::default()
        };
        assert_eq!(uris(blank), ["/b?"]);
        let submit = Settings {
            submit: false,
            ..Settings::default()
        };
        assert_eq!(uris(submit), [""; 0]);
    }

    proptest! {
        #[test]
        fn any_tag_soup_is_read(html in "(<|</|>|form|input|select|option|textarea| name=a| type=password| form=a|=|\"|'|&amp;|é){0,60}") {
            extract(Settings::default(), &html);
        }
    }
}
