//! The exact text of written records. The captures are those of the standard's examples (annex C of ISO 28500:2017): the logo of
//! www.archive.org, its DNS answer, its revisits.

use std::fs;
use std::io::Read as _;

use flate2::bufread::MultiGzDecoder;
use opilio_archive::{
    Compression, Digest, Fields, PluginInForce, Record, RecordId, RefersTo, RevisitProfile,
    TEXT_DNS, Truncation, WarcInfo, Writer,
};

use crate::fixture::*;

const URI: &str = "http://www.archive.org/images/logoc.jpg";

fn uuid(text: &str) -> RecordId {
    text.parse().unwrap()
}

fn response_id() -> RecordId {
    uuid("urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0")
}

fn warcinfo_id() -> RecordId {
    uuid("urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39")
}

/// Records as written, without the warcinfo record.
#[track_caller]
fn check(capture: &[Record], expected: &str) {
    let written = |compression| {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path(), compression);
        let (mut writer, _) =
            Writer::open_with_ids(config, WarcInfo::new("opilio"), warcinfo_id).unwrap();
        let locations = writer.write(capture, now()).unwrap();
        (
            fs::read(writer.close().unwrap().unwrap()).unwrap(),
            locations,
        )
    };
    let (plain, locations) = written(Compression::None);
    let text = String::from_utf8(plain[locations[0].offset as usize..].to_vec()).unwrap();
    assert_eq!(text.replace("\r\n", "\n"), expected);
    let ends = text.matches("\r\n").count();
    assert_eq!(
        ends + bare_line_ends(capture),
        text.matches('\n').count(),
        "CR LF throughout"
    );

    // In a compressed file, each record is a member with the same bytes, except for the file's name.
    let (packed, members) = written(Compression::Gzip(9));
    for (member, location) in members.iter().zip(&locations) {
        let range = |offset: u64, length: u64| offset as usize..(offset + length) as usize;
        let mut unpacked = Vec::new();
        let bytes = &packed[range(member.offset, member.length)];
        MultiGzDecoder::new(bytes)
            .read_to_end(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, plain[range(location.offset, location.length)]);
    }
}

/// Returns the number of bare line ends in the blocks of a capture.
fn bare_line_ends(capture: &[Record]) -> usize {
    let dns = |record: &&Record| record.content_type == TEXT_DNS;
    capture.iter().filter(dns).count() * 2
}

#[test]
fn a_file_begins_with_its_warcinfo() {
    let info = WarcInfo {
        hostname: Some("crawling017.archive.org".into()),
        ip: Some("207.241.227.234".into()),
        operator: Some("Admin".into()),
        contact: Some("https://archive.org/about/".into()),
        organization: Some("Internet Archive".into()),
        audience: Some("researchers".into()),
        is_part_of: Some("testcrawl-20050708".into()),
        description: Some("testcrawl with WARC output".into()),
        robots: Some("obey".into()),
        user_agent: Some(
            "Mozilla/5.0 (compatible; opilio/0.1.0 +https://archive.org/about/)".into(),
        ),
        from: Some("archive-crawler-agent@lists.example".into()),
        plugins: vec![PluginInForce {
            name: "html".into(),
            version: "0.1.0".into(),
            hash: "sha256:00ff".into(),
            settings: None,
        }],
        ..WarcInfo::new("opilio/0.1.0 https://github.com/opilio/opilio")
    };
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Compression::None);
    let (mut writer, _) = Writer::open_with_ids(config, info, warcinfo_id).unwrap();
    let locations = writer.write(&[response(1, b"")], now()).unwrap();
    let bytes = fs::read(writer.close().unwrap().unwrap()).unwrap();
    let text = String::from_utf8(bytes[..locations[0].offset as usize].to_vec()).unwrap();
    let expected = "\
WARC/1.1
WARC-Type: warcinfo
WARC-Record-ID: <urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39>
WARC-Date: 2006-09-19T17:20:24.000000Z
WARC-Filename: WEB-20060919172024000-00000-4711~crawler~0.warc
WARC-Block-Digest: sha1:4RZ64UKRAPEOPHCW7IBT22F2FJLN7R7M
Content-Type: application/warc-fields
Content-Length: 608

software: opilio/0.1.0 https://github.com/opilio/opilio
format: WARC File Format 1.1
conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/
hostname: crawling017.archive.org
ip: 207.241.227.234
operator: Admin
contact: https://archive.org/about/
organization: Internet Archive
audience: researchers
isPartOf: testcrawl-20050708
description: testcrawl with WARC output
robots: obey
http-header-user-agent: Mozilla/5.0 (compatible; opilio/0.1.0 +https://archive.org/about/)
http-header-from: archive-crawler-agent@lists.example
plugin: html 0.1.0 sha256:00ff


";
    assert_eq!(text.replace("\r\n", "\n"), expected);
    assert_eq!(text.matches("\r\n").count(), text.matches('\n').count());
}

#[test]
fn a_capture_is_request_response_and_metadata() {
    let date = at("2006-09-19T17:20:24.123456789Z");
    let request_id = uuid("urn:uuid:4885803b-eebd-4b27-a090-144450c11594");
    let ip = Some("207.241.233.58".parse().unwrap());
    let protocols = vec!["http/1.1".to_owned(), "tls/1.3".to_owned()];
    let request = Record {
        ip,
        protocols: protocols.clone(),
        concurrent_to: vec![response_id()],
        ..Record::request(
            request_id,
            date,
            URI,
            "GET /images/logoc.jpg HTTP/1.1\r\nHost: www.archive.org\r\n\r\n".into(),
        )
    };
    let response = Record {
        ip,
        protocols,
        truncated: Some(Truncation::Length),
        payload_digest: Some(Digest::sha1(b"image")),
        extra: vec![("WARC-Cipher-Suite".into(), "TLS_AES_128_GCM_SHA256".into())],
        ..Record::response(
            response_id(),
            date,
            URI,
            "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nimage\r\n0\r\n\r\n"
                .into(),
        )
    };
    let mut fields = Fields::new();
    fields
        .push("via", "http://www.archive.org/")
        .push("hopsFromSeed", "E")
        .push("fetchTimeMs", "565")
        .outlink("http://www.archive.org/a b", 'L', "a/@href");
    let metadata_id = uuid("urn:uuid:16da6da0-bcdc-49c3-927e-57494593b943");
    let metadata = Record::metadata(metadata_id, date, URI, response_id(), &fields);
    check(
        &[response, request, metadata],
        "\
WARC/1.1
WARC-Type: response
WARC-Record-ID: <urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>
WARC-Date: 2006-09-19T17:20:24.123456Z
WARC-Target-URI: http://www.archive.org/images/logoc.jpg
WARC-IP-Address: 207.241.233.58
WARC-Protocol: http/1.1
WARC-Protocol: tls/1.3
WARC-Truncated: length
WARC-Warcinfo-ID: <urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39>
WARC-Cipher-Suite: TLS_AES_128_GCM_SHA256
WARC-Payload-Digest: sha1:BZ3CSJ4URCGU6H5HL6Z275GKE7CY6VVG
WARC-Block-Digest: sha1:W3QGW7YQVIZ6FOETW2UVC3LPMYNBRZM2
Content-Type: application/http;msgtype=response
Content-Length: 88

HTTP/1.1 200 OK
Content-Type: image/jpeg
Transfer-Encoding: chunked

5
image
0



WARC/1.1
WARC-Type: request
WARC-Record-ID: <urn:uuid:4885803b-eebd-4b27-a090-144450c11594>
WARC-Date: 2006-09-19T17:20:24.123456Z
WARC-Target-URI: http://www.archive.org/images/logoc.jpg
WARC-Concurrent-To: <urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>
WARC-IP-Address: 207.241.233.58
WARC-Protocol: http/1.1
WARC-Protocol: tls/1.3
WARC-Warcinfo-ID: <urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39>
WARC-Block-Digest: sha1:FK6RSWO3W4NQGMWUAEKJYNEVJQFTN3ZJ
Content-Type: application/http;msgtype=request
Content-Length: 57

GET /images/logoc.jpg HTTP/1.1
Host: www.archive.org



WARC/1.1
WARC-Type: metadata
WARC-Record-ID: <urn:uuid:16da6da0-bcdc-49c3-927e-57494593b943>
WARC-Date: 2006-09-19T17:20:24.123456Z
WARC-Target-URI: http://www.archive.org/images/logoc.jpg
WARC-Concurrent-To: <urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>
WARC-Warcinfo-ID: <urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39>
WARC-Block-Digest: sha1:46HZIUZLQ6HB6J2XPBFJIWL7X4HXUM2A
Content-Type: application/warc-fields
Content-Length: 114

via: http://www.archive.org/
hopsFromSeed: E
fetchTimeMs: 565
outlink: http://www.archive.org/a%20b L a/@href


",
    );
}

#[test]
fn a_revisit_refers_to_the_repeated_record() {
    let refers_to = RefersTo {
        id: Some(response_id()),
        target_uri: Some(URI.into()),
        date: Some(at("2006-09-19T17:20:24.5Z")),
    };
    let date = at("2007-03-06T00:43:35Z");
    let identical = Record {
        payload_digest: Some(Digest::sha1(b"image")),
        truncated: Some(Truncation::Length),
        ip: Some("::ffff:207.241.233.58".parse().unwrap()),
        ..Record::revisit(
            uuid("urn:uuid:16da6da0-bcdc-49c3-927e-57494593bbbb"),
            RevisitProfile::IdenticalPayloadDigest,
            date,
            URI,
            refers_to.clone(),
            "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n\r\n".into(),
        )
    };
    let not_modified = Record {
        ip: Some("2001:db8::1".parse().unwrap()),
        ..Record::revisit(
            uuid("urn:uuid:16da6da0-bcdc-49c3-927e-57494593dddd"),
            RevisitProfile::ServerNotModified,
            date,
            URI,
            refers_to,
            "HTTP/1.1 304 Not Modified\r\nETag: \"3e45-67e-2ed02ec0\"\r\n\r\n".into(),
        )
    };
    check(
        &[identical, not_modified],
        "\
WARC/1.1
WARC-Type: revisit
WARC-Record-ID: <urn:uuid:16da6da0-bcdc-49c3-927e-57494593bbbb>
WARC-Date: 2007-03-06T00:43:35.000000Z
WARC-Target-URI: http://www.archive.org/images/logoc.jpg
WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest
WARC-Refers-To: <urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>
WARC-Refers-To-Target-URI: http://www.archive.org/images/logoc.jpg
WARC-Refers-To-Date: 2006-09-19T17:20:24.500000Z
WARC-IP-Address: 207.241.233.58
WARC-Truncated: length
WARC-Warcinfo-ID: <urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39>
WARC-Payload-Digest: sha1:BZ3CSJ4URCGU6H5HL6Z275GKE7CY6VVG
WARC-Block-Digest: sha1:4YMY7YRLH63S2LGSPUXR6ZZHFKSDYYUJ
Content-Type: application/http;msgtype=response
Content-Length: 45

HTTP/1.1 200 OK
Content-Type: image/jpeg



WARC/1.1
WARC-Type: revisit
WARC-Record-ID: <urn:uuid:16da6da0-bcdc-49c3-927e-57494593dddd>
WARC-Date: 2007-03-06T00:43:35.000000Z
WARC-Target-URI: http://www.archive.org/images/logoc.jpg
WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified
WARC-Refers-To: <urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>
WARC-Refers-To-Target-URI: http://www.archive.org/images/logoc.jpg
WARC-Refers-To-Date: 2006-09-19T17:20:24.500000Z
WARC-IP-Address: 2001:db8::1
WARC-Warcinfo-ID: <urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39>
WARC-Block-Digest: sha1:5BXNUVMWFP7ZUTZPFPLUBGUH5PAFEBKM
Content-Type: application/http;msgtype=response
Content-Length: 56

HTTP/1.1 304 Not Modified
ETag: \"3e45-67e-2ed02ec0\"



",
    );
}

#[test]
fn a_dns_answer_is_a_resource() {
    let dns = Record {
        ip: Some("207.241.224.2".parse().unwrap()),
        protocols: vec!["dns".into()],
        ..Record::resource(
            uuid("urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb1"),
            now(),
            "dns:www.archive.org",
            TEXT_DNS,
            "20060919172024\nwww.archive.org.\t589\tIN\tA\t207.241.233.58\n".into(),
        )
    };
    check(
        &[dns],
        "\
WARC/1.1
WARC-Type: resource
WARC-Record-ID: <urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb1>
WARC-Date: 2006-09-19T17:20:24.000000Z
WARC-Target-URI: dns:www.archive.org
WARC-IP-Address: 207.241.224.2
WARC-Protocol: dns
WARC-Warcinfo-ID: <urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39>
WARC-Block-Digest: sha1:CUZJFJQNITOPJPVBAYLEO6L5LDPXWBD2
Content-Type: text/dns
Content-Length: 56

20060919172024
www.archive.org.	589	IN	A	207.241.233.58


",
    );
}

#[test]
fn values_from_servers_cannot_add_header_lines() {
    let inject = "x\r\nWARC-Type: warcinfo\r\n\r\n";
    let record = Record {
        content_type: inject.into(),
        protocols: vec![inject.into()],
        extra: vec![("X-Note".into(), inject.into())],
        ..Record::response(
            response_id(),
            now(),
            format!("http://zürich.example/ {inject}"),
            "".into(),
        )
    };
    check(
        &[record],
        "\
WARC/1.1
WARC-Type: response
WARC-Record-ID: <urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>
WARC-Date: 2006-09-19T17:20:24.000000Z
WARC-Target-URI: http://zürich.example/%20x%0D%0AWARC-Type:%20warcinfo%0D%0A%0D%0A
WARC-Protocol: x WARC-Type: warcinfo
WARC-Warcinfo-ID: <urn:uuid:d7ae5c10-e6b3-4d27-967d-34780c58ba39>
X-Note: x WARC-Type: warcinfo
WARC-Block-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ
Content-Type: x WARC-Type: warcinfo
Content-Length: 0



",
    );
}
