//! Documents in the form in which visits are compared.

use opilio_browser::PageSession;

use crate::chromium::TestPool;
use crate::site::{Site, html, missing, typed};

const PAGE: &str =
    "<!DOCTYPE html><html lang=en><head><title>A  page</title><meta name=x content='a &amp; \"b\"'>
    <link rel=stylesheet href=/a.css><link rel=canonical href=/c><style>p {}</style></head>
    <body onload=0 class=b id=a><noscript>none</noscript>
    <!-- kept --><form><input name=attributes><input name=firstChild></form>
    <div id=root style='left: 1px' nonce=n></div><template>t</template>
    <script nonce=n>
        root.append('made ', 'here &   <there>');
        root.style.left = Math.random() + 'px';
        const host = document.body.appendChild(document.createElement('x-card'));
        host.attachShadow({mode: 'open'}).innerHTML = '<p>in its shadow<style>p {}</style>';
        host.append('light');
    </script>";

#[tokio::test]
async fn documents_are_written_without_invisible_and_changing_parts() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => typed("text/html", PAGE),
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let document = page.document().await.expect("an answer");
    assert_eq!(
        document.expect("a document").replace("> <", "><"),
        "<!DOCTYPE html><html lang=\"en\"><head><title>A page</title>\
         <meta content=\"a &amp; &quot;b&quot;\" name=\"x\"><link href=\"/c\" rel=\"canonical\"></head>\
         <body class=\"b\" id=\"a\"><!-- kept --><form><input name=\"attributes\"><input name=\"firstChild\"></form>\
         <div id=\"root\">made here &amp; &lt;there&gt;</div>\
         <x-card><template shadowrootmode=\"open\"><p>in its shadow</p></template>light</x-card></body></html>"
    );
    page.close().await;
    test.close().await;
}

#[tokio::test]
async fn a_document_beyond_its_limit_is_not_written() {
    let Some(test) = TestPool::with(|it| it.document_characters_max = 1000).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html("<p>short"),
        "https://site.test/long" => html(&"<p>long".repeat(1000)),
        _ => missing(),
    })
    .await;
    for (target, has_document) in [("", true), ("long", false)] {
        let mut page = PageSession::open(&test.pool, site.clone())
            .await
            .expect("a browser");
        let uri = format!("https://site.test/{target}");
        page.load(&uri).await.expect("a page");
        let document = page.document().await.expect("an answer");
        assert_eq!(document.is_some(), has_document, "{uri}");
        page.close().await;
    }
    test.close().await;
}
