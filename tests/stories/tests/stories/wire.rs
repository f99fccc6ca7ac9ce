//! The bytes on the wire are the record.

use opilio_stories::{crawl, raw};

const WWW: &str = "www.story.localhost";

#[tokio::test]
async fn request_and_response_records_are_what_the_server_saw_and_sent() {
    let chunked = b"HTTP/1.1 200 Fine By Me\r\ncOnTeNt-TyPe: text/html\r\nX-Odd:   two  blanks \r\nx-odd: again\r\n\
        Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n6;ext=1\r\n<a hre\r\n1B\r\nf='/plain.html'>plain</a>..\r\n0\r\nX-After: 1\r\n\r\n";
    let until_closed = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\nno length\r\n\r\nat all";
    let robots = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let server = raw(vec![
        ("/robots.txt", robots.to_vec()),
        ("/", chunked.to_vec()),
        ("/plain.html", until_closed.to_vec()),
    ]);
    let told = crawl().seed(server.url(WWW, "/")).run().await.finished();
    let exchanges = server.exchanges();
    assert_eq!(exchanges.len(), 3);
    for exchange in exchanges {
        let uri = server.url(WWW, &exchange.target);
        assert_eq!(
            told.record("request", &uri).block,
            exchange.request,
            "{uri}"
        );
        assert_eq!(
            told.record("response", &uri).block,
            exchange.response,
            "{uri}"
        );
    }
}
