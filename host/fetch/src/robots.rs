//! robots.txt (RFC 9309): the rules of a site, and the line that decides each verdict.
//!
//! Nothing is fetched here. The caller follows up to [`ROBOTS_REDIRECTS_MAX`] redirects and passes the response.
//! [`Robots::from_response`] documents the meaning of each status. Fields outside the standard are read if they are in common
//! use (`Crawl-delay`, `Sitemap`) and otherwise ignored. Common typing errors are accepted, as in other parsers. The media
//! type is ignored: HTML has no such lines and so no rules, and rules sent as `text/html` apply.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use memchr::memmem;

/// Longest robots.txt that is parsed. RFC 9309 §2.5 requires at least 500 KiB. A longer one is cut after the last whole line
/// and marked as truncated.
pub const ROBOTS_BYTES_MAX: usize = 512 * 1024;

/// Redirects that the caller follows; RFC 9309 §2.3.1.2 requires at least five.
pub const ROBOTS_REDIRECTS_MAX: usize = 5;

/// Validity of an answer: RFC 9309 §2.4 asks for no more than a day.
pub const ROBOTS_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Time for which a server error disallows everything, before robots.txt is fetched again.
pub const UNREACHABLE_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Longest crawl delay that a site can ask for; longer ones are reduced to it.
pub const CRAWL_DELAY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The rules of one robots.txt, or the status in place of it.
#[derive(Clone, Debug)]
pub struct Robots {
    answer: Answer,
}

#[derive(Clone, Debug)]
enum Answer {
    File(File),
    /// The server has no robots.txt: everything is allowed (RFC 9309 §2.3.1.3).
    Unavailable(i32),
    /// The rules could not be fetched: everything is disallowed (RFC 9309 §2.3.1.4).
    Unreachable(i32),
}

#[derive(Clone, Debug, Default)]
struct File {
    groups: Vec<Group>,
    sitemaps: Vec<String>,
    truncated: bool,
}

/// The rules under one run of `User-agent` lines.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Product tokens, lower-case; `*` for all crawlers.
    agents: Vec<String>,
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
}

/// One `Allow` or `Disallow` line.
#[derive(Clone, Debug)]
struct Rule {
    allow: bool,
    /// Normalised; `*` is a wildcard at any position.
    pattern: Vec<u8>,
    /// The pattern ended in `$`.
    anchored: bool,
    line: RobotsLine,
}

/// A known field of robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// A line of robots.txt, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsLine {
    /// Line number, from 1.
    pub number: usize,
    /// The line without comment and surrounding blanks.
    pub text: String,
}

/// Whether a path may be fetched, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Fetching is allowed.
    Allowed(RobotsReason),
    /// Fetching is disallowed.
    Refused(RobotsReason),
}

/// The reason for a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsReason {
    /// The longest rule that matches.
    Rule(RobotsLine),
    /// A group applies to us, but none of its rules matches.
    NoRuleMatches,
    /// No group applies to us.
    NoGroup,
    /// `/robots.txt` itself is always allowed (RFC 9309 §2.2.2).
    RobotsTxt,
    /// The server has no robots.txt; the status that it sent.
    Unavailable(i32),
    /// The server failed, or could not be reached; the HTTP status, or a code of the glossary.
    Unreachable(i32),
}

/// User agents whose rules a crawl obeys.
#[derive(Clone, Copy, Debug)]
pub enum Agents<'a> {
    /// Our own user agent.
    Own,
    /// The first of these product tokens that the file names; our own user agent if it names none.
    FirstNamed(&'a [String]),
    /// Our own user agent and all of these: a path is allowed if any of them may fetch it.
    MostFavoured(&'a [String]),
}

impl Verdict {
    /// Returns `true` if the path may be fetched.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Verdict::Allowed(_))
    }
}

impl Robots {
    /// Parses a robots.txt. Any bytes are accepted: lines outside the standard are ignored.
    pub fn parse(bytes: &[u8]) -> Self {
        Robots {
            answer: Answer::File(File::parse(bytes)),
        }
    }

    /// Interprets a response (RFC 9309 §2.3.1), after redirects. `status` is HTTP's, or a negative code of the glossary.
    ///
    /// | status | meaning |
    /// |---|---|
    /// | 2xx | the rules in `body` |
    /// | 3xx | too many redirects, or no target: as if there were no robots.txt |
    /// | 4xx | no robots.txt: everything is allowed |
    /// | 5xx, 1xx, negative | unknown: everything is disallowed until robots.txt is fetched again |
    pub fn from_response(status: i32, body: &[u8]) -> Self {
        let answer = match status {
            200..=299 => Answer::File(File::parse(body)),
            300..=499 => Answer::Unavailable(status),
            _ => Answer::Unreachable(status),
        };
        Robots { answer }
    }

    /// Time for which this may be used before robots.txt is fetched again.
    pub fn lifetime(&self) -> Duration {
        match self.answer {
            Answer::File(_) | Answer::Unavailable(_) => ROBOTS_LIFETIME,
            Answer::Unreachable(_) => UNREACHABLE_LIFETIME,
        }
    }

    /// Whether `user_agent`, a product token or a whole `User-Agent` header, may fetch `path_and_query`.
    pub fn verdict(&self, user_agent: &str, path_and_query: &str) -> Verdict {
        let path = path_and_query.split('#').next().unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        if path == "/robots.txt" {
            return Verdict::Allowed(RobotsReason::RobotsTxt);
        }
        let file = match &self.answer {
            Answer::File(file) => file,
            Answer::Unavailable(status) => {
                return Verdict::Allowed(RobotsReason::Unavailable(*status));
            }
            Answer::Unreachable(status) => {
                return Verdict::Refused(RobotsReason::Unreachable(*status));
            }
        };
        let mut groups = file.groups_for(user_agent).peekable();
        if groups.peek().is_none() {
            return Verdict::Allowed(RobotsReason::NoGroup);
        }
        let path = normalise(path.as_bytes(), Part::Path);
        let matching = groups
            .flat_map(|group| &group.rules)
            .filter(|rule| rule.matches(&path));
        // The longest rule; among equally long ones an allowing one, and of those the first.
        let decisive = matching.reduce(|best, rule| {
            let weight = |rule: &Rule| (rule.length(), rule.allow);
            if weight(rule) > weight(best) {
                rule
            } else {
                best
            }
        });
        match decisive {
            None => Verdict::Allowed(RobotsReason::NoRuleMatches),
            Some(rule) if rule.allow => Verdict::Allowed(RobotsReason::Rule(rule.line.clone())),
            Some(rule) => Verdict::Refused(RobotsReason::Rule(rule.line.clone())),
        }
    }

    /// Returns the user agent whose rules decide about `path_and_query`, either `own` or one of `agents`, and their verdict.
    pub fn verdict_among<'a>(
        &self,
        own: &'a str,
        agents: Agents<'a>,
        path_and_query: &str,
    ) -> (&'a str, Verdict) {
        let first = self.agent_among(own, agents);
        let verdict = self.verdict(first, path_and_query);
        let others = match agents {
            Agents::MostFavoured(others) if !verdict.is_allowed() => others,
            _ => &[],
        };
        let favoured = others.iter().find_map(|agent| {
            let verdict = self.verdict(agent, path_and_query);
            verdict.is_allowed().then_some((agent.as_str(), verdict))
        });
        favoured.unwrap_or((first, verdict))
    }

    /// Returns the user agent whose crawl delay applies, and whose rules are checked first.
    pub fn agent_among<'a>(&self, own: &'a str, agents: Agents<'a>) -> &'a str {
        match agents {
            Agents::Own | Agents::MostFavoured(_) => own,
            Agents::FirstNamed(agents) => {
                let named = agents.iter().find(|agent| self.names(agent));
                named.map_or(own, String::as_str)
            }
        }
    }

    /// Returns `true` if a group names this user agent itself; `*` does not count.
    pub fn names(&self, user_agent: &str) -> bool {
        let token = product_token(user_agent).to_ascii_lowercase();
        let mut groups = self.file().into_iter().flat_map(|file| &file.groups);
        groups.any(|group| group.names(&token))
    }

    /// The delay between two requests that the site asks of `user_agent`, at most [`CRAWL_DELAY_MAX`]. Of several the longest
    /// applies. Not in the standard.
    pub fn crawl_delay(&self, user_agent: &str) -> Option<Duration> {
        let groups = self.file()?.groups_for(user_agent);
        groups.filter_map(|group| group.crawl_delay).max()
    }

    /// The values of all `Sitemap` lines, in order, as written. They belong to no group.
    pub fn sitemaps(&self) -> impl Iterator<Item = &str> {
        let file = self.file().into_iter();
        file.flat_map(|file| &file.sitemaps).map(String::as_str)
    }

    /// Returns `true` if the file was longer than [`ROBOTS_BYTES_MAX`].
    pub fn is_truncated(&self) -> bool {
        self.file().is_some_and(|file| file.truncated)
    }

    fn file(&self) -> Option<&File> {
        match &self.answer {
            Answer::File(file) => Some(file),
            Answer::Unavailable(_) | Answer::Unreachable(_) => None,
        }
    }
}

impl File {
    fn parse(bytes: &[u8]) -> Self {
        let truncated = bytes.len() > ROBOTS_BYTES_MAX;
        let mut kept = &bytes[..bytes.len().min(ROBOTS_BYTES_MAX)];
        if truncated {
            // Half a line could have another meaning than the whole one.
            let end = kept.iter().rposition(|b| matches!(b, b'\n' | b'\r'));
            kept = &kept[..end.unwrap_or_default()];
        }
        let text = decode(kept);
        let mut file = File {
            truncated,
            ..File::default()
        };
        // Whether the next `User-agent` line begins a group: the last line of one was not a `User-agent` line.
        let mut closed = true;
        for (number, line) in (1..).zip(lines(&text)) {
            let line = trim(line.split(|b| *b == b'#').next().unwrap_or_default());
            let Some((field, value)) = field_and_value(line) else {
                continue;
            };
            match field {
                Field::UserAgent => {
                    if closed {
                        file.groups.push(Group::default());
                    }
                    closed = false;
                    // A line without a valid name still ends the group before it.
                    if let (Some(group), Some(agent)) = (file.groups.last_mut(), agent(value)) {
                        group.agents.push(agent);
                    }
                }
                Field::Allow | Field::Disallow => {
                    closed = true;
                    let allow = field == Field::Allow;
                    if let (Some(group), false) = (file.groups.last_mut(), value.is_empty()) {
                        group.rules.push(Rule::parse(allow, value, number, line));
                    }
                }
                Field::CrawlDelay => {
                    // A member of its group, as authors intend.
                    closed = true;
                    if let (Some(group), Some(delay)) = (file.groups.last_mut(), delay(value)) {
                        group.crawl_delay = Some(group.crawl_delay.map_or(delay, |d| d.max(delay)));
                    }
                }
                Field::Sitemap if value.is_empty() => {}
                Field::Sitemap => {
                    let sitemap = String::from_utf8_lossy(value).into_owned();
                    file.sitemaps.push(sitemap);
                }
            }
        }
        file
    }

    /// All groups that name us; if none does, all groups for `*`.
    fn groups_for<'a>(&'a self, user_agent: &str) -> impl Iterator<Item = &'a Group> + use<'a> {
        let token = product_token(user_agent).to_ascii_lowercase();
        let named = |token: &str| self.groups.iter().any(|group| group.names(token));
        let token = if named(&token) { token } else { "*".to_owned() };
        self.groups.iter().filter(move |group| group.names(&token))
    }
}

impl Group {
    fn names(&self, token: &str) -> bool {
        self.agents.iter().any(|agent| agent == token)
    }
}

impl Rule {
    fn parse(allow: bool, value: &[u8], number: usize, line: &[u8]) -> Self {
        let (value, anchored) = match value.strip_suffix(b"$") {
            Some(rest) => (rest, true),
            None => (value, false),
        };
        Rule {
            allow,
            pattern: normalise(value, Part::Pattern),
            anchored,
            line: RobotsLine {
                number,
                text: String::from_utf8_lossy(line).into_owned(),
            },
        }
    }

    /// Octets of the pattern: the measure of "most specific" (RFC 9309 §2.2.2).
    fn length(&self) -> usize {
        self.pattern.len() + usize::from(self.anchored)
    }

    /// Returns `true` if the pattern matches. Every piece between wildcards is taken at its first place after the piece before it;
    /// this never spoils a later piece. The last piece of an anchored pattern is compared with the end. No backtracking: time is
    /// linear.
    fn matches(&self, path: &[u8]) -> bool {
        let mut pieces = self.pattern.split(|b| *b == b'*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = path.strip_prefix(first) else {
            return false;
        };
        let mut wild = false;
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            wild = true;
            if self.anchored && pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            match memmem::find(rest, piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        wild || !self.anchored || rest.is_empty()
    }
}

/// Finds the product token of a crawler in its `User-Agent`, the name in robots.txt files. It is the product after
/// `compatible;`, or else the first product that is not one of browsers. A bare token is itself.
pub fn product_token(user_agent: &str) -> &str {
    /// Words of browsers' user agents, which many crawlers copy.
    const SHARED: [&str; 12] = [
        "mozilla",
        "compatible",
        "applewebkit",
        "khtml",
        "like",
        "gecko",
        "chrome",
        "chromium",
        "safari",
        "version",
        "mobile",
        "headlesschrome",
    ];
    let in_comment = find_ignoring_case(user_agent, "compatible;")
        .map(|at| &user_agent[at + "compatible;".len()..])
        .and_then(|after| products(after).next());
    let own = || {
        products(user_agent).find(|token| {
            let shared = SHARED.iter().any(|s| token.eq_ignore_ascii_case(s));
            !shared
        })
    };
    in_comment
        .or_else(own)
        .or_else(|| products(user_agent).next())
        .unwrap_or_default()
}

/// Product names, the parts before versions: `a/1.0` is `a`. Links, addresses and bare numbers are skipped.
fn products(user_agent: &str) -> impl Iterator<Item = &str> {
    user_agent
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '(' | ')' | ','))
        .filter(|word| !word.starts_with('+') && !word.contains("://") && !word.contains('@'))
        .map(|word| word.split('/').next().unwrap_or_default())
        .filter(|name| name.contains(|c: char| c.is_ascii_alphabetic()))
}

fn find_ignoring_case(text: &str, what: &str) -> Option<usize> {
    let windows = text.as_bytes().windows(what.len());
    windows
        .into_iter()
        .position(|window| window.eq_ignore_ascii_case(what.as_bytes()))
}

/// Splits a line into field and value, at the colon or, without one, at the only run of blanks (`Disallow /`). The
/// spellings are those that Google's parser accepts, and similar ones for `Crawl-delay`.
fn field_and_value(line: &[u8]) -> Option<(Field, &[u8])> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let (key, value) = match memchr::memchr(b':', line) {
        Some(colon) => (trim(&line[..colon]), trim(&line[colon + 1..])),
        None => {
            let (key, value) = line.split_at(line.iter().position(is_blank)?);
            (key, trim(value))
        }
    };
    let field = match key.to_ascii_lowercase().as_slice() {
        b"user-agent" | b"useragent" | b"user agent" => Field::UserAgent,
        b"allow" => Field::Allow,
        b"disallow" | b"dissallow" | b"dissalow" | b"disalow" | b"diasllow" | b"disallaw" => {
            Field::Disallow
        }
        b"crawl-delay" | b"crawldelay" | b"crawl delay" => Field::CrawlDelay,
        b"sitemap" | b"site-map" => Field::Sitemap,
        _ => return None,
    };
    let is_sentence = !line.contains(&b':') && value.iter().any(is_blank);
    (!is_sentence).then_some((field, value))
}

/// The product token of a `User-agent` line: the text before a version, a blank, or another character that a token cannot
/// have. `opilio*` names opilio, `*` all crawlers, `*bot` none.
fn agent(value: &[u8]) -> Option<String> {
    let is_end = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b'*' | b',' | b';' | b'(');
    let end = value.iter().position(is_end).unwrap_or(value.len());
    match &value[..end] {
        [] if value.first() == Some(&b'*') && value.get(1).is_none_or(is_end) => Some("*".into()),
        [] => None,
        token => Some(String::from_utf8_lossy(token).to_ascii_lowercase()),
    }
}

/// Parses a delay in seconds, or with a unit (`500ms`, `10 s`, `2 min`, `1h`). `None` if it is not a number or negative.
fn delay(value: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.to_ascii_lowercase();
    let seconds = text.parse().ok().or_else(|| {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = text.split_at(end);
        let unit = match unit.trim_start() {
            unit if unit.starts_with("ms") || unit.starts_with("milli") => 0.001,
            unit if unit.starts_with('m') => 60.0,
            unit if unit.starts_with('h') => 3600.0,
            _ => 1.0,
        };
        Some(number.parse::<f64>().ok()? * unit)
    })?;
    if !(seconds.is_finite() && seconds >= 0.0) {
        return None;
    }
    Some(Duration::from_secs_f64(
        seconds.min(CRAWL_DELAY_MAX.as_secs_f64()),
    ))
}

/// Converts to UTF-8. UTF-8 may have a byte order mark or a part of it; UTF-16 is recognised by its mark.
fn decode(bytes: &[u8]) -> Cow<'_, [u8]> {
    match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, _)) if encoding != encoding_rs::UTF_8 => {
            let (text, _) = encoding.decode_with_bom_removal(bytes);
            Cow::Owned(text.into_owned().into_bytes())
        }
        Some((_, mark)) => Cow::Borrowed(&bytes[mark..]),
        None => Cow::Borrowed(match bytes {
            [0xef, 0xbb, rest @ ..] | [0xef, rest @ ..] => rest,
            whole => whole,
        }),
    }
}

/// Lines that end in LF, CR or CRLF.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = memchr::memchr2(b'\n', b'\r', text) else {
            return rest.take();
        };
        let length = if text[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = Some(&text[end + length..]);
        Some(&text[..end])
    })
}

/// Removes blanks, tabs and other control characters from both ends.
fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [0..=b' ', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., 0..=b' '] = bytes {
        bytes = rest;
    }
    bytes
}

/// The part that is normalised. In a path `*` and `$` are literal, in a pattern `*` is the wildcard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Pattern,
}

/// Normalises spellings that RFC 3986 §2 treats as equal (RFC 9309 §2.2.2). Octets that a URI cannot have are encoded;
/// encoded octets that it may have are decoded. In a query this includes `/`, `:`, `?` and `@`, which separate nothing
/// there. Literal `*` and `$` are encoded on both sides.
fn normalise(text: &[u8], part: Part) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut normal = Vec::with_capacity(text.len());
    let encode = |normal: &mut Vec<u8>, byte: u8| {
        normal.extend([
            b'%',
            HEX[usize::from(byte >> 4)],
            HEX[usize::from(byte & 15)],
        ]);
    };
    let (mut at, mut in_query) = (0, false);
    while let Some(&byte) = text.get(at) {
        at += 1;
        let encoded = (byte == b'%').then(|| hex_octet(&text[at..])).flatten();
        match (encoded, byte) {
            (Some(octet), _) => {
                at += 2;
                let plain = octet.is_ascii_alphanumeric()
                    || matches!(octet, b'-' | b'.' | b'_' | b'~')
                    || in_query && matches!(octet, b'/' | b':' | b'?' | b'@');
                match plain {
                    true => normal.push(octet),
                    false => encode(&mut normal, octet),
                }
            }
            (None, b'*') if part == Part::Pattern => normal.push(b'*'),
            (None, b'*' | b'$' | 0..=b' ' | 0x7f..) => encode(&mut normal, byte),
            (None, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}') => {
                encode(&mut normal, byte);
            }
            (None, _) => {
                in_query |= byte == b'?';
                normal.push(byte);
            }
        }
    }
    normal
}

fn hex_octet(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Allowed(reason) => write!(f, "allowed: {reason}"),
            Verdict::Refused(reason) => write!(f, "refused: {reason}"),
        }
    }
}

impl fmt::Display for RobotsReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RobotsReason::Rule(line) => write!(f, "line {}, {}", line.number, line.text),
            RobotsReason::NoRuleMatches => f.write_str("no rule matches"),
            RobotsReason::NoGroup => f.write_str("no group for this user agent"),
            RobotsReason::RobotsTxt => f.write_str("robots.txt itself"),
            RobotsReason::Unavailable(status) => write!(f, "no robots.txt (status {status})"),
            RobotsReason::Unreachable(status) => {
                write!(f, "robots.txt unreachable (status {status})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(robots: &str, agent: &str, path: &str, allowed: bool) {
        let verdict = Robots::parse(robots.as_bytes()).verdict(agent, path);
        assert_eq!(verdict.is_allowed(), allowed, "{path}: {verdict}\n{robots}");
    }

    #[track_caller]
    fn rules(rules: &str, path: &str, allowed: bool) {
        check(&format!("User-agent: *\n{rules}"), "x", path, allowed);
    }

    #[test]
    fn the_simple_example_of_the_standard() {
        // RFC 9309 §5.1.
        let robots = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
            User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
            User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
            User-Agent: quxbot\n";
        check(robots, "foobot", "/example/page.html", true);
        check(robots, "FooBot/2.1", "/example/allowed.gif", true);
        check(robots, "foobot", "/example/other.html", false);
        check(robots, "barbot", "/example/page.html", false);
        check(robots, "bazbot", "/example/page.html", false);
        check(robots, "bazbot", "/example/x.gif", true);
        check(robots, "quxbot", "/example/x.gif", true);
        check(robots, "otherbot", "/example/x.gif", false);
        check(robots, "otherbot", "/publications/x.gif", true);
        check(robots, "otherbot", "/elsewhere", true);
    }

    #[test]
    fn the_longest_match_of_the_standard() {
        // RFC 9309 §5.2.
        let robots =
            "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n";
        check(robots, "foobot", "/example/page/disallowed.gif", false);
        check(robots, "foobot", "/example/page/", true);
        rules("Disallow: /p\nAllow: /p", "/p", true);
        rules("Allow: /p\nDisallow: /p", "/p", true);
        rules("Allow: /a\nDisallow: /a*", "/ab", false);
    }

    #[test]
    fn special_characters() {
        // RFC 9309 §2.2.3.
        rules(
            "Allow: /this/path/exactly$\nDisallow: /",
            "/this/path/exactly",
            true,
        );
        rules(
            "Allow: /this/path/exactly$\nDisallow: /",
            "/this/path/exactly/not",
            false,
        );
        rules("Disallow: /this/*/exactly", "/this/path/exactly", false);
        rules("Disallow: /a # comment", "/ab", false);
        rules("Disallow: /a%2A", "/a*b", false);
        rules("Disallow: /a%2A", "/axb", true);
        rules("Disallow: /a%24", "/a$", false);
        rules("Disallow: /a%24$", "/a$b", true);
        rules("Disallow: /*$", "/x", false);
        rules("Disallow: *", "/x", false);
        rules("Disallow: /*/*/*.x$", "/a/b/c.x", false);
        rules("Disallow: /*/*/*.x$", "/a/b.x", true);
        rules("Disallow: /ab*ba$", "/aba", true);
        rules("Disallow: /ab*ba$", "/abba", false);
        rules("Disallow: $", "/", true);
        rules("Disallow: /$", "/?q", true);
    }

    #[test]
    fn encodings_are_compared_as_one() {
        // RFC 9309 §2.2.2, the table of encodings: every path against every spelling of its pattern.
        let table: [&[&str]; 4] = [
            &["/foo/bar?baz=quz"],
            &[
                "/foo/bar?baz=https://foo.bar",
                "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            ],
            &[
                "/foo/bar/\u{30c4}",
                "/foo/bar/%E3%83%84",
                "/foo/bar/%e3%83%84",
            ],
            &["/foo/bar/%62%61%7A", "/foo/bar/baz"],
        ];
        for (row, spellings) in table.iter().enumerate() {
            for pattern in *spellings {
                for (other, paths) in table.iter().enumerate() {
                    for path in *paths {
                        rules(&format!("Disallow: {pattern}$"), path, row != other);
                    }
                }
            }
        }
        rules("Disallow: /a%2Fb", "/a/b", true);
        rules("Disallow: /a/b", "/a%2fb", true);
        rules("Disallow: /?a=b%26c", "/?a=b&c", true);
        rules("Disallow: /a%3cb", "/a%3Cb", false);
        rules("Disallow: /a<b", "/a%3Cb", false);
        rules("Disallow: /a b", "/a%20b", false);
        rules("Disallow: /%zz", "/%zz", false);
        rules("Disallow: /%", "/%", false);
        rules("Disallow: /*?x=/y", "/z?x=/y", false);
        rules("Disallow: /*/y", "/z?x=/y", false);
    }

    #[test]
    fn groups_are_merged_and_specific_ones_stand_alone() {
        let robots = "User-agent: a\nDisallow: /1\n\nUser-agent: *\nDisallow: /2\n\nUser-agent: A\nDisallow: /3\n";
        check(robots, "a", "/1", false);
        check(robots, "a", "/2", true);
        check(robots, "a", "/3", false);
        check(robots, "b", "/2", false);
        check(robots, "b", "/3", true);
        // §2.2.1: empty and unknown lines, sitemaps among them, do not separate user agents from their rules.
        check(
            "User-agent: a\n\nSitemap: /s\nHost: x\nUser-agent: b\nDisallow: /\n",
            "a",
            "/",
            false,
        );
        check("Disallow: /\nUser-agent: *\nAllow: /x", "a", "/y", true);
        check(
            "User-agent: *\nCrawl-delay: 5\nUser-agent: a\nDisallow: /",
            "b",
            "/",
            true,
        );
        check(
            "User-agent: *\nDisallow: /a\nUser-agent:\nDisallow: /\n",
            "x",
            "/b",
            true,
        );
        check("", "a", "/", true);
        check("User-agent: *\nDisallow:", "a", "/", true);
        check(
            "User-agent: *\nDisallow: /\nUser-agent: a\nDisallow:\n",
            "a",
            "/",
            true,
        );
    }

    #[test]
    fn lines_end_and_begin_in_many_ways() {
        for end in ["\n", "\r", "\r\n", "\n\n", "\r\r\n"] {
            let robots = [
                "\u{feff}User-agent : *",
                "\tDISALLOW\t:\t/a\t",
                "nonsense",
                ":",
                " : x",
                "allow:/a/b",
            ];
            check(&robots.join(end), "x", "/a", false);
            check(&robots.join(end), "x", "/a/b", true);
        }
        let utf16: Vec<u8> = "\u{feff}User-agent: *\nDisallow: /\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert!(!Robots::parse(&utf16).verdict("x", "/").is_allowed());
    }

    #[test]
    fn robots_txt_itself_is_allowed() {
        rules("Disallow: /", "/robots.txt", true);
        rules("Disallow: /", "/robots.txt?x", false);
        rules("Disallow: /", "", false);
        rules("Disallow: /b", "/a#/b", true);
    }

    #[track_caller]
    fn token(user_agent: &str, expected: &str) {
        assert_eq!(product_token(user_agent), expected, "{user_agent}");
    }

    #[test]
    fn the_product_token_is_found_in_the_user_agent() {
        token("opilio", "opilio");
        token("opilio/0.1", "opilio");
        token(
            "Mozilla/5.0 (compatible; opilio/0.1 +https://bot.example/about)",
            "opilio",
        );
        token(
            "Mozilla/5.0 (Compatible;opilio/0.1; +https://bot.example)",
            "opilio",
        );
        token(
            "Mozilla/5.0 (compatible; archive.org_bot +http://archive.example)",
            "archive.org_bot",
        );
        token(
            "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko; compatible; my-bot/2) Chrome/1 Safari/1",
            "my-bot",
        );
        token("Mozilla allowbot2 99.9", "allowbot2");
        token(
            "Mozilla/5.0 (compatible; +http://a.example) thisbot/1",
            "thisbot",
        );
        token(
            "Mozilla/5.0 (compatible; +www.a.example; thisbot/1)",
            "thisbot",
        );
        token(
            "Mozilla/5.0 (compatible; crawl@a.example thisbot/1)",
            "thisbot",
        );
        token("Mozilla/5.0", "Mozilla");
        token("", "");
        token("+ 1.0", "");
    }

    #[test]
    fn agents_match_by_whole_token() {
        let ours = "Mozilla/5.0 (compatible; mybot/1.0 +https://example.org/bot)";
        check("User-agent: bot\nDisallow: /", ours, "/", true);
        check("User-agent: mybot-news\nDisallow: /", ours, "/", true);
        check("User-agent: example\nDisallow: /", ours, "/", true);
        check("User-agent: mozilla\nDisallow: /", ours, "/", true);
        check("User-agent: MyBot\nDisallow: /", ours, "/", false);
        check("User-agent: mybot/1.0\nDisallow: /", ours, "/", false);
        check("User-agent: mybot crawler\nDisallow: /", ours, "/", false);
        check("User-agent: * \nDisallow: /", "", "/", false);
    }

    #[test]
    fn wildcards_and_lists_of_agents() {
        for (agent, names_us) in [
            ("mybot*", true),
            ("MyBot/*", true),
            ("mybot, otherbot", true),
            ("mybot;", true),
            ("my*", false),
            ("*bot", false),
            ("*mybot", false),
            ("*", true),
            ("* # all", true),
            ("*/*", true),
            ("**", true),
        ] {
            check(
                &format!("User-agent: {agent}\nDisallow: /"),
                "mybot/1.0",
                "/",
                !names_us,
            );
        }
        assert!(Robots::parse(b"User-agent: mybot*\nAllow: /").names("mybot"));
    }

    #[test]
    fn typing_errors_are_accepted() {
        for key in [
            "disallow",
            "dissallow",
            "dissalow",
            "disalow",
            "diasllow",
            "disallaw",
        ] {
            rules(&format!("{key}: /a"), "/a", false);
            rules(&format!("{key} /a"), "/a", false);
            rules(&format!("{key}\t /a # no colon"), "/a", false);
        }
        rules("Disallow: /\nAllow /a", "/a", true);
        for key in ["useragent:", "user agent:", "User-Agent", "USERAGENT"] {
            check(&format!("{key} mybot\nDisallow: /"), "mybot", "/", false);
        }
        // Neither a sentence nor a word that only begins like a field is a rule.
        rules("Disallow / for everybody", "/", true);
        rules("Disallowed: /", "/", true);
        rules("Disallow", "/", true);
        let robots = Robots::parse(b"site-map: /1.xml\nSitemap /2.xml\n");
        assert!(robots.sitemaps().eq(["/1.xml", "/2.xml"]));
        for mark in [&b"\xef\xbb\xbf"[..], b"\xef\xbb", b"\xef"] {
            let robots = [mark, b"User-agent: *\nDisallow: /\n"].concat();
            assert!(!Robots::parse(&robots).verdict("x", "/").is_allowed());
        }
    }

    #[test]
    fn html_has_no_rules() {
        let page = "<!DOCTYPE html>\n<html><head><title>Not found</title>\n<style>a:hover { color: red }</style>\n\
            <p>User-agent: *<br>\nDisallow: /<br>\n<p>Allow me: no page here.\n";
        check(page, "x", "/", true);
        assert_eq!(
            Robots::parse(page.as_bytes()).verdict("x", "/"),
            Verdict::Allowed(RobotsReason::NoGroup)
        );
        // Rules apply, whatever text is around them.
        check(
            &format!("<pre>\nUser-agent: *\nDisallow: /a\n</pre>\n{page}"),
            "x",
            "/a",
            false,
        );
    }

    #[test]
    fn the_rules_of_other_agents_can_apply() {
        let robots = Robots::parse(
            b"User-agent: *\nDisallow: /\nCrawl-delay: 9\n\nUser-agent: big\nDisallow: /b\nCrawl-delay: 1\n\n\
              User-agent: small\nDisallow: /s\n",
        );
        let agents = ["absent", "small", "big"].map(str::to_owned);
        let first = |path| {
            let (agent, verdict) = robots.verdict_among("us", Agents::FirstNamed(&agents), path);
            (agent, verdict.is_allowed())
        };
        assert_eq!(first("/b"), ("small", true));
        assert_eq!(first("/s"), ("small", false));
        let most = |path| {
            let (agent, verdict) = robots.verdict_among("us", Agents::MostFavoured(&agents), path);
            (agent, verdict.is_allowed())
        };
        assert_eq!(most("/s"), ("big", true));
        assert_eq!(most("/b"), ("small", true));
        let own = robots.verdict_among("us", Agents::Own, "/b");
        assert_eq!((own.0, own.1.is_allowed()), ("us", false));
        assert_eq!(
            robots.agent_among("us", Agents::FirstNamed(&agents)),
            "small"
        );
        assert_eq!(
            robots.agent_among("us", Agents::FirstNamed(&agents[..1])),
            "us"
        );
        // If robots.txt could not be fetched, no agent is favoured.
        let down = Robots::from_response(503, b"");
        let (_, verdict) = down.verdict_among("us", Agents::MostFavoured(&agents), "/");
        assert!(!verdict.is_allowed());
    }

    #[test]
    fn verdicts_name_their_line() {
        let robots =
            Robots::parse(b"# hi\nUser-agent: *\nDisallow: /a  # no\nAllow: /a/b\nDisallow: /a\n");
        let line = |number, text: &str| {
            RobotsReason::Rule(RobotsLine {
                number,
                text: text.to_owned(),
            })
        };
        assert_eq!(
            robots.verdict("x", "/ac"),
            Verdict::Refused(line(3, "Disallow: /a"))
        );
        assert_eq!(
            robots.verdict("x", "/a/b"),
            Verdict::Allowed(line(4, "Allow: /a/b"))
        );
        assert_eq!(
            robots.verdict("x", "/"),
            Verdict::Allowed(RobotsReason::NoRuleMatches)
        );
        assert_eq!(
            Robots::parse(b"").verdict("x", "/"),
            Verdict::Allowed(RobotsReason::NoGroup)
        );
    }

    #[test]
    fn statuses_without_rules() {
        let of = |status| Robots::from_response(status, b"User-agent: *\nDisallow: /a\n");
        for (status, a, b) in [
            (200, false, true),
            (206, false, true),
            (301, true, true),
            (404, true, true),
            (429, true, true),
            (500, false, false),
            (503, false, false),
            (100, false, false),
            (-1, false, false),
            (-4, false, false),
            (-404, false, false),
        ] {
            let allowed = |path| of(status).verdict("x", path).is_allowed();
            assert_eq!((allowed("/a"), allowed("/b")), (a, b), "{status}");
        }
        assert!(of(503).lifetime() < of(200).lifetime());
        assert!(of(503).verdict("x", "/robots.txt").is_allowed());
    }

    #[test]
    fn crawl_delays_and_sitemaps() {
        let robots = Robots::parse(
            b"Sitemap: http://a.example/1.xml # first\nUser-agent: a\nCrawl-delay: 1.5\nCrawl-Delay: 0.5\n\
              User-agent: b\nCrawl-delay: ten\nUser-agent: c\nCrawl-delay: -1\nUser-agent: d\nCrawl-delay: inf\n\
              User-agent: e\ncrawl-delay:1e99\n sitemap :/2.xml\nSitemap:\nUser-agent: *\nCrawl-delay: 7",
        );
        let seconds = |agent| robots.crawl_delay(agent).map(|d| d.as_secs_f64());
        assert_eq!(
            ["a", "b", "c", "d", "z"].map(seconds),
            [Some(1.5), None, None, None, Some(7.0)]
        );
        assert_eq!(robots.crawl_delay("e"), Some(CRAWL_DELAY_MAX));
        for (written, seconds) in [
            ("10s", Some(10.0)),
            ("10 S", Some(10.0)),
            ("1.5 seconds", Some(1.5)),
            (".5", Some(0.5)),
            ("500ms", Some(0.5)),
            ("2 min", Some(120.0)),
            ("1h", Some(3600.0)),
            ("10; 20", Some(10.0)),
            ("10,5", Some(10.0)),
            ("s", None),
            ("-10s", None),
            ("1.2.3s", None),
            ("", None),
        ] {
            let robots = format!("User-agent: *\nCrawl-delay: {written}");
            let delay = Robots::parse(robots.as_bytes()).crawl_delay("x");
            assert_eq!(delay.map(|d| d.as_secs_f64()), seconds, "{written}");
        }
        assert_eq!(
            Robots::parse(b"User-agent: *\ncrawldelay 3").crawl_delay("x"),
            Some(Duration::from_secs(3))
        );
        assert!(robots.sitemaps().eq(["http://a.example/1.xml", "/2.xml"]));
    }

    #[test]
    fn a_long_robots_txt_is_cut_at_a_line() {
        let head = "User-agent: *\nDisallow: /a\n";
        let filler = "#".repeat(ROBOTS_BYTES_MAX - head.len() - 12);
        let robots =
            Robots::parse(format!("{head}{filler}\nDisallow: /private\nDisallow: /b\n").as_bytes());
        assert!(robots.is_truncated());
        let allowed = |path| robots.verdict("x", path).is_allowed();
        assert_eq!(["/a", "/b", "/x"].map(allowed), [false, true, true]);
        assert!(!Robots::parse(head.as_bytes()).is_truncated());
    }

    #[test]
    fn hostile_patterns_take_linear_time() {
        let rule = format!("Disallow: /{}b$\n", "*a".repeat(2000));
        let robots = Robots::parse(format!("User-agent: *\n{}", rule.repeat(100)).as_bytes());
        let path = format!("/{}", "a".repeat(8000));
        let start = Instant::now();
        assert!(robots.verdict("x", &path).is_allowed());
        // With backtracking this test would not end.
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), agent in ".{0,40}", path in ".{0,40}") {
            let _ = Robots::parse(&bytes).verdict(&agent, &path);
            let _ = Robots::parse(&bytes).crawl_delay(&agent);
        }

        #[test]
        fn matching_agrees_with_backtracking(pattern in "/[ab*]{0,8}\\$?", path in "/[ab]{0,8}") {
            fn slow(pattern: &[u8], path: &[u8]) -> bool {
                match (pattern, path) {
                    ([], _) | ([b'$'], []) => true,
                    ([b'*', rest @ ..], _) => (0..=path.len()).any(|at| slow(rest, &path[at..])),
                    ([p, rest @ ..], [c, path @ ..]) if p == c => slow(rest, path),
                    _ => false,
                }
            }
            let refused = slow(pattern.as_bytes(), path.as_bytes());
            rules(&format!("Disallow: {pattern}"), &path, !refused);
        }
    }
}
