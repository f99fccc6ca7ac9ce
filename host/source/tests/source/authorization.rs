//! Authorization at registries, and secrecy of credentials.

use crate::fixture::{Fixture, component, image_of};
use opilio_test_registry::{Guard, Registry};

fn password(registry: &Registry, name: &str, password: &str) -> String {
    let pair = data_encoding::BASE64.encode(format!("{name}:{password}").as_bytes());
    format!(
        r#"{{"auths":{{"{}":{{"auth":"{pair}"}}}}}}"#,
        registry.host()
    )
}

#[test]
fn anonymous_tokens_need_no_credentials() {
    let registry = Registry::open();
    let fixture = Fixture::new();
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    registry.guard(Guard::TokensForAll);
    registry.asked();
    let written = image_of(&registry, "p:1").to_string();
    assert_eq!(
        fixture.resolve(&written).unwrap().bytes,
        component("stories")
    );
    let tokens: Vec<_> = registry.requests();
    let scope = "GET /token?scope=repository%3Ap%3Apull&service=tests";
    assert!(tokens.contains(&scope.to_owned()), "{tokens:?}");
}

#[test]
fn each_operation_gets_a_token_for_the_password() {
    let registry = Registry::guarded(Guard::Tokens("author", "secret"));
    let fixture = Fixture::with_credentials(&password(&registry, "author", "secret"));
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let asked = registry.asked();
    let with = |start: &str| {
        let found = asked.iter();
        found
            .filter_map(|asked| asked.authorization.as_deref())
            .filter(|authorization| authorization.starts_with(start))
            .count()
    };
    assert_eq!(
        with("Basic"),
        2,
        "one token to look, one to write: {asked:?}"
    );
    assert!(with("Bearer token-for-pull,push") >= 4, "{asked:?}");
    let to_token = asked
        .iter()
        .filter(|asked| asked.path.starts_with("/token"));
    assert_eq!(to_token.count(), 2, "the password goes nowhere else");
}

#[test]
fn a_refresh_token_is_exchanged_for_a_token() {
    let registry = Registry::guarded(Guard::TokensForRefresh("refresh"));
    let credentials = format!(
        r#"{{"auths":{{"{}":{{"identitytoken":"refresh"}}}}}}"#,
        registry.host()
    );
    let fixture = Fixture::with_credentials(&credentials);
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let written = image_of(&registry, "p:1").to_string();
    fixture.resolve(&written).unwrap();
}

#[test]
fn a_registry_that_asks_for_a_password_gets_it() {
    let registry = Registry::guarded(Guard::Basic("author", "secret"));
    let fixture = Fixture::with_credentials(&password(&registry, "author", "secret"));
    fixture.push(&component("stories"), &image_of(&registry, "p:1"));
    let written = image_of(&registry, "p:1").to_string();
    fixture.resolve(&written).unwrap();
}

#[test]
fn refusals_give_advice() {
    let registry = Registry::guarded(Guard::Tokens("author", "secret"));
    let written = image_of(&registry, "p:1").to_string();
    let anonymous = Fixture::new();
    anonymous.check_refused(&written, &["was refused", "DENIED", "--credentials"]);
    let stranger = Fixture::with_credentials("{}");
    let log_in = format!("docker login {}", registry.host());
    stranger.check_refused(&written, &["was refused", &log_in]);
    let wrong = Fixture::with_credentials(&password(&registry, "author", "guess"));
    wrong.check_refused(&written, &["was refused", "do not allow to read it"]);
    registry.guard(Guard::Basic("author", "secret"));
    anonymous.check_refused(
        &written,
        &["UNAUTHORIZED authentication required", "--credentials"],
    );
    wrong.check_refused(&written, &["do not allow to read it"]);
}

#[test]
fn control_characters_of_registries_are_removed_from_errors() {
    let registry = Registry::guarded(Guard::Tokens("author", "secret"));
    let problem = Fixture::new().resolve(&image_of(&registry, "p:1").to_string());
    let text = problem.unwrap_err().to_string();
    assert!(text.contains("not [31m you"), "{text:?}");
}

#[test]
fn an_unreadable_credentials_file_is_reported() {
    let registry = Registry::guarded(Guard::Basic("author", "secret"));
    let written = image_of(&registry, "p:1").to_string();
    let broken = Fixture::with_credentials("auths: none");
    broken.check_refused(
        &written,
        &["config.json does not have the format of `docker login`"],
    );
    let helper = Fixture::with_credentials(r#"{"credsStore":"no-such-helper-anywhere"}"#);
    helper.check_refused(
        &written,
        &["cannot run the credential helper", "install it"],
    );
}

#[test]
fn an_unreachable_token_service_is_reported() {
    let closed = Registry::open();
    let realm = format!("http://{}/token", closed.host());
    drop(closed);
    let registry = Registry::guarded(Guard::TokensAt(realm));
    let written = image_of(&registry, "p:1").to_string();
    Fixture::new().check_refused(&written, &["cannot be reached"]);
}
