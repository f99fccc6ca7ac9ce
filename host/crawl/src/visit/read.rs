//! Reading a response on a document lane, within the memory that documents may take.

use opilio_visit::reading::{Reading, ReadingTask};

use crate::lanes::{LanePanic, Lanes, Reserved, bytes_for};

/// Reads a response once there is memory for its content. The memory is held until it is dropped.
pub(super) async fn within_memory(
    lanes: &Lanes,
    site: &str,
    mut task: ReadingTask,
) -> Result<(Reading, Reserved), LanePanic> {
    let mut content = task.content_expected();
    loop {
        let read = move |mut reserved: Reserved| {
            let decoded = |bytes| reserved.shrink_to(bytes_for(bytes));
            let reading = task.run_within(content, decoded)?;
            // Its bytes and its text, until the visit is written.
            reserved.shrink_to(2 * reading.document.content().len() as u64);
            Ok((reading, reserved))
        };
        match lanes.document(site, bytes_for(content), read).await? {
            Ok(read) => return Ok(read),
            Err(more) => {
                let more: Box<ReadingTask> = more;
                content = more.content_max;
                task = *more;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;
    use std::sync::Arc;
    use std::time::Duration;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use jiff::Timestamp;
    use opilio_fetch::ResponseHead;
    use opilio_sandbox::{Candidate, Visit};
    use opilio_visit::plugin_view::PluginMemory;

    use super::*;
    use crate::lanes::DocumentMemory;

    const MIB: u64 = 1 << 20;

    #[tokio::test]
    async fn memory_is_held_for_the_bytes_and_the_text_of_a_page_until_its_visit_is_written() {
        let mut coder = GzEncoder::new(Vec::new(), Compression::best());
        coder.write_all(&vec![0; 20 << 20]).unwrap();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let head = ResponseHead {
            version: "HTTP/1.1".to_owned(),
            status: 200,
            reason: String::new(),
            headers: vec![
                header("Content-Type", "text/html"),
                header("Content-Encoding", "gzip"),
            ],
            length: 0,
        };
        let times = (Timestamp::UNIX_EPOCH, Duration::ZERO);
        let content = coder.finish().unwrap();
        let exchange = opilio_visit::synthetic::exchange(head.clone(), &content, times);
        let uri = "http://a.example/".to_owned();
        let candidate = Candidate::seed(uri.clone(), String::new());
        let task = ReadingTask {
            stacks: Arc::default(),
            exchange: Arc::new(exchange),
            head,
            base: uri.clone(),
            uri,
            visit: Visit::of(candidate, Timestamp::UNIX_EPOCH),
            last: None,
            last_fingerprint: None,
            last_extractor: None,
            bodyless: false,
            content_max: 64 * MIB,
            links_max: 10,
            memory: PluginMemory::default(),
        };
        let plugins = Box::new(|| 0);
        let lanes = Lanes::start(DocumentMemory { max: MIB, plugins }).unwrap();
        let (reading, reserved) = within_memory(&lanes, "a.example", task).await.unwrap();
        assert_eq!(reading.document.content().len() as u64, 20 * MIB);
        assert_eq!(reserved.bytes(), 40 * MIB);
    }
}
