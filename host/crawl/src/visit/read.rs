//! Reading of a response on a document lane, within the memory limit for documents.

use opilio_visit::reading::{Reading, ReadingTask};

use crate::lanes::{LanePanic, Lanes, Reserved, bytes_for};

/// Reads a response once memory for its content is free. The memory is reserved until the returned reservation is dropped.
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
            // Memory for the bytes and the text, until the capture is written.
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
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::lanes::DocumentMemory;

    const MIB: u64 = 1 << 20;

    #[tokio::test]
    async fn memory_for_bytes_and_text_of_a_page_is_reserved_until_its_visit_is_written() {
        let mut coder = GzEncoder::new(Vec::new(), Compression::best());
        coder.write_all(&vec![0; 20 << 20]).unwrap();
        let task = opilio_visit::synthetic::reading_task(coder.finish().unwrap().into());
        let plugins = Box::new(|| 0);
        let lanes = Lanes::start(DocumentMemory { max: MIB, plugins }).unwrap();
        let (reading, reserved) = within_memory(&lanes, "a.example", task).await.unwrap();
        assert_eq!(reading.document.content().len() as u64, 20 * MIB);
        assert_eq!(reserved.bytes(), 40 * MIB);
    }
}
