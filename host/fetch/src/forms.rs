//! Login forms: the fields of a page's form, the values that the profile fills in, and the body of the request.
//!
//! Sites put tokens into hidden fields and refuse a form without them. Only the tags of forms are parsed.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StartTag, Token, Tokenizer};
use opilio_uri::Uri;

/// Maximum fields of one form that are read. Real forms have fewer.
const FIELDS_MAX: usize = 1000;

/// `Content-Type` of [`encode`]'s bodies.
pub const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// A form of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Target URI of the form.
    pub action: Uri,
    /// Names and values that the form would send unfilled, in order.
    pub fields: Vec<(String, String)>,
    has_password: bool,
}

/// All forms of a page that are sent over HTTP.
fn forms(html: &str, page: &Uri) -> Vec<Form> {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut found: Vec<Form> = Vec::new();
    let mut is_open = false;
    for token in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Ok(Token::StartTag(tag)) if *tag.name == b"form"[..] && !is_open => {
                let action = attribute(&tag, b"action").unwrap_or_default();
                let action = match action.trim() {
                    "" => Ok(page.clone()),
                    action => page.join(action),
                };
                if let Some(action) = action.ok().filter(Uri::is_http) {
                    is_open = true;
                    found.push(Form {
                        action,
                        fields: Vec::new(),
                        has_password: false,
                    });
                }
            }
            Ok(Token::EndTag(tag)) if *tag.name == b"form"[..] => is_open = false,
            Ok(Token::StartTag(tag)) if *tag.name == b"input"[..] && is_open => {
                if let Some(form) = found.last_mut() {
                    form.take(&tag);
                }
            }
            _ => {}
        }
    }
    found
}

/// The form of a page that is sent to `action`; otherwise the first with a password field.
pub fn login_form(html: &str, page: &Uri, action: Option<&Uri>) -> Option<Form> {
    let mut found = forms(html, page);
    let sends = |form: &Form| action == Some(&form.action);
    let place = found
        .iter()
        .position(|form| sends(form) && form.has_password)
        .or_else(|| found.iter().position(sends))
        .or_else(|| found.iter().position(|form| form.has_password))?;
    Some(found.swap_remove(place))
}

impl Form {
    /// A form without fields.
    pub fn empty(action: &Uri) -> Form {
        Form {
            action: action.clone(),
            fields: Vec::new(),
            has_password: false,
        }
    }

    fn take(&mut self, tag: &StartTag<()>) {
        let kind = attribute(tag, b"type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        self.has_password |= kind == "password";
        let is_sent = match kind.as_str() {
            "submit" | "button" | "image" | "reset" | "file" => false,
            "checkbox" | "radio" => attribute(tag, b"checked").is_some(),
            _ => true,
        };
        let name = attribute(tag, b"name").filter(|name| !name.is_empty());
        if let (true, Some(name)) = (is_sent && self.fields.len() < FIELDS_MAX, name) {
            let otherwise = if kind == "checkbox" { "on" } else { "" };
            let value = attribute(tag, b"value").unwrap_or_else(|| otherwise.to_owned());
            self.fields.push((name, value));
        }
    }

    /// Fills in fields. A value replaces that of the field with the same name; a new field is appended.
    pub fn fill_in<'f>(&mut self, fields: impl Iterator<Item = (&'f str, &'f str)>) {
        for (name, value) in fields {
            match self.fields.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => value.clone_into(old),
                None => self.fields.push((name.to_owned(), value.to_owned())),
            }
        }
    }
}

/// Encodes the fields as a form sends them: in the body by POST, in the query by GET.
pub fn encode(fields: &[(String, String)]) -> String {
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    encoded.extend_pairs(fields);
    encoded.finish()
}

fn attribute(tag: &StartTag<()>, name: &[u8]) -> Option<String> {
    let value = tag.attributes.get(name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "https://www.example.org/account/";

    fn page() -> Uri {
        Uri::parse(PAGE).unwrap()
    }

    #[test]
    fn the_form_with_a_password_field_is_the_login_form() {
        let html = r#"
            <form action="/search"><input name=q value=x></form>
            <script>document.write("<form action='/wrong'><input type=password>")</script>
            <FORM method=post ACTION="login?a=b&amp;c=d">
              <input type="hidden" name="token" value="a&amp;b">
              <input name=user><input type=PASSWORD name="pass">
              <input type=checkbox name=stay checked><input type=checkbox name=not>
              <input type=radio name=r value=1><input type=radio name=r value=2 checked>
              <input type=submit name=go value=Go><input value=nameless>
            </form>"#;
        let mut form = login_form(html, &page(), None).unwrap();
        assert_eq!(
            form.action.as_str(),
            "https://www.example.org/account/login?a=b&c=d"
        );
        form.fill_in([("pass", "ü&="), ("extra", "1")].into_iter());
        assert_eq!(
            encode(&form.fields),
            "token=a%26b&user=&pass=%C3%BC%26%3D&stay=on&r=2&extra=1"
        );
    }

    #[test]
    fn a_given_action_selects_the_form() {
        let html = "<form action=/a><input type=password name=p></form><form action=/b><input name=t value=1>";
        let action = page().join("/b").unwrap();
        let form = login_form(html, &page(), Some(&action)).unwrap();
        assert_eq!(form.fields, [("t".to_owned(), "1".to_owned())]);
        let unknown = page().join("/c").unwrap();
        let form = login_form(html, &page(), Some(&unknown)).unwrap();
        assert_eq!(form.action.path(), "/a");
        assert_eq!(login_form("<p>no form", &page(), None), None);
        assert_eq!(login_form("<form><input name=q>", &page(), None), None);
        let own = login_form("<form><input type=password>", &page(), None).unwrap();
        assert_eq!(own.action, page());
        let script = "<form action='javascript:x()'><input type=password></form>";
        assert_eq!(login_form(script, &page(), None), None);
    }
}
