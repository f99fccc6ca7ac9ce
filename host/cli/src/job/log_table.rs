//! `opilio job logs JOB crawl --parquet FILE`: the crawl log as a table in Apache Parquet, for analysts.

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result};
use opilio_crawl::logs::filter::LoggedVisit;
use opilio_crawl::logs::search::{LogSearch, search};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde::Deserialize;

/// Columns of the table, in the order in which [`Rows::write`] writes them. The names are those of `crawl.jsonl`.
const SCHEMA: &str = "
message crawl_log {
    required int64 logged (TIMESTAMP(MILLIS, true));
    required int32 status;
    optional int64 size;
    required binary uri (STRING);
    optional binary hop_path (STRING);
    optional binary via (STRING);
    required binary media_type (STRING);
    optional int64 fetched (TIMESTAMP(MILLIS, true));
    optional int64 took_ms;
    optional binary digest (STRING);
    optional binary source (STRING);
    required group annotations (LIST) {
        repeated group list {
            required binary element (STRING);
        }
    }
    optional binary warc_filename (STRING);
    optional int64 warc_offset;
}";

/// Rows that are held in memory and written at once.
const GROUP_ROWS: usize = 50_000;

/// Writes the selected lines of a crawl log, rotated files included, to a file that appears when it is complete. Returns the number
/// of rows.
///
/// # Errors
/// Fails if the log cannot be read or the file cannot be written. An existing file is replaced only by a complete one.
pub(super) fn write(log: &Path, selected: LogSearch, file: &Path) -> Result<u64> {
    let unwritten = || format!("cannot write {}", file.display());
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut unfinished = tempfile::Builder::new()
        .prefix(".opilio-")
        .suffix(".parquet")
        .tempfile_in(folder)
        .with_context(unwritten)?;
    let rows = write_to(log, selected, &mut unfinished)
        .with_context(|| format!("cannot write {} to {}", log.display(), file.display()))?;
    unfinished.persist(file).with_context(unwritten)?;
    Ok(rows)
}

fn write_to(log: &Path, mut selected: LogSearch, out: impl Write + Send) -> Result<u64> {
    selected.oldest_first = true;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("opilio ", env!("CARGO_PKG_VERSION")).to_owned());
    let schema = parse_message_type(SCHEMA)?.into();
    let mut writer = SerializedFileWriter::new(out, schema, properties.build().into())?;
    let mut written = 0;
    let mut rows = Rows::default();
    loop {
        selected.limit = GROUP_ROWS - rows.len();
        let found = search(log, &selected)?;
        for line in &found.lines {
            rows.push(line);
        }
        selected.after = found.after;
        let is_end = selected.after.is_none();
        if rows.len() >= GROUP_ROWS || is_end && rows.len() > 0 {
            written += rows.len() as u64;
            let mut group = writer.next_row_group()?;
            std::mem::take(&mut rows).write(&mut group)?;
            group.close()?;
        }
        if is_end {
            break;
        }
    }
    writer.close()?;
    Ok(written)
}

/// The place of the capture, from the thirteenth column (`logs.extra-info`).
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extra {
    warc_filename: Option<String>,
    warc_file_offset: Option<u64>,
}

/// Values of an optional column, and for each row 1 if it has a value.
struct Optional<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            levels: Vec::new(),
        }
    }
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn write<D: DataType<T = T>, W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> ParquetResult<()> {
        column::<D, W>(group, &self.values, Some(&self.levels), None)
    }
}

/// Rows by column.
#[derive(Default)]
struct Rows {
    logged: Vec<i64>,
    status: Vec<i32>,
    size: Optional<i64>,
    uri: Vec<ByteArray>,
    hop_path: Optional<ByteArray>,
    via: Optional<ByteArray>,
    media_type: Vec<ByteArray>,
    fetched: Optional<i64>,
    took_ms: Optional<i64>,
    digest: Optional<ByteArray>,
    source: Optional<ByteArray>,
    /// One value for each annotation. A row without annotations has levels and no value.
    annotations: Optional<ByteArray>,
    /// 0 for the first annotation of a row, and 1 for a further one.
    annotation_repeats: Vec<i16>,
    warc_filename: Optional<ByteArray>,
    warc_offset: Optional<i64>,
}

impl Rows {
    fn len(&self) -> usize {
        self.logged.len()
    }

    /// Adds a line. Lines without the columns of `crawl.log`, such as the torn last line of a killed process, are left out.
    fn push(&mut self, line: &str) {
        let Some(visit) = LoggedVisit::parse(line) else {
            return;
        };
        let Ok(logged) = visit.logged.parse::<jiff::Timestamp>() else {
            return;
        };
        let extra = line.split_ascii_whitespace().nth(12);
        let extra = extra.and_then(|json| serde_json::from_str::<Extra>(json).ok());
        let extra = extra.unwrap_or_default();
        let signed = |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok());
        self.logged.push(logged.as_millisecond());
        self.status.push(visit.status);
        self.size.push(signed(visit.size));
        self.uri.push(visit.uri.into());
        self.hop_path.push(visit.hop_path.map(ByteArray::from));
        self.via.push(visit.via.map(ByteArray::from));
        self.media_type.push(visit.media_type.into());
        let fetched = visit.fetched.map(|at| at.as_millisecond());
        self.fetched.push(fetched);
        self.took_ms.push(signed(visit.took_ms));
        self.digest.push(visit.digest.map(ByteArray::from));
        self.source.push(visit.source.map(ByteArray::from));
        if visit.annotations.is_empty() {
            self.annotations.push(None);
            self.annotation_repeats.push(0);
        }
        for (n, annotation) in visit.annotations.into_iter().enumerate() {
            self.annotations.push(Some(annotation.into()));
            self.annotation_repeats.push(i16::from(n > 0));
        }
        self.warc_filename
            .push(extra.warc_filename.as_deref().map(ByteArray::from));
        self.warc_offset.push(signed(extra.warc_file_offset));
    }

    fn write<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> ParquetResult<()> {
        column::<Int64Type, W>(group, &self.logged, None, None)?;
        column::<Int32Type, W>(group, &self.status, None, None)?;
        self.size.write::<Int64Type, W>(group)?;
        column::<ByteArrayType, W>(group, &self.uri, None, None)?;
        self.hop_path.write::<ByteArrayType, W>(group)?;
        self.via.write::<ByteArrayType, W>(group)?;
        column::<ByteArrayType, W>(group, &self.media_type, None, None)?;
        self.fetched.write::<Int64Type, W>(group)?;
        self.took_ms.write::<Int64Type, W>(group)?;
        self.digest.write::<ByteArrayType, W>(group)?;
        self.source.write::<ByteArrayType, W>(group)?;
        column::<ByteArrayType, W>(
            group,
            &self.annotations.values,
            Some(&self.annotations.levels),
            Some(&self.annotation_repeats),
        )?;
        self.warc_filename.write::<ByteArrayType, W>(group)?;
        self.warc_offset.write::<Int64Type, W>(group)
    }
}

/// Writes the next column of a row group: values, and Parquet's definition and repetition levels, which assign the values to rows.
fn column<D: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[D::T],
    definitions: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) -> ParquetResult<()> {
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("no column is left".into()))?;
    column
        .typed::<D>()
        .write_batch(values, definitions, repetitions)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    const LINES: &str = "\
2026-11-20T12:00:00.001Z   200        335 http://a.org/ - - text/html #001 20261120120000000+6 sha1:EYLOBZUVJB7A6T6F3XAYYV647FOOLBI2 http://a.org/ unchanged,5vis {\"warcFilename\":\"one.warc.gz\",\"warcFileOffset\":77}
2026-11-20T12:00:01.002Z    -2          - http://b.org/x LE http://a.org/ no-type #002 - - - -
2026-11-20T12:00:02.003Z   404          0 http://a.org/torn";

    #[test]
    fn complete_lines_of_all_files_become_rows() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("crawl.log");
        let older = "2026-11-19T00:00:00.000Z 301 0 http://old.org/ - - text/html #001 20261119000000000+1 - - -\n";
        std::fs::write(folder.path().join("crawl.log.20261119120000000"), older).unwrap();
        std::fs::write(&log, LINES).unwrap();
        let file = folder.path().join("crawl.parquet");
        assert_eq!(write(&log, LogSearch::default(), &file).unwrap(), 3);
        let reader = SerializedFileReader::new(std::fs::File::open(&file).unwrap()).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().to_string())
            .collect();
        let expected = [
            r#"{logged: 2026-11-19 00:00:00.000 +00:00, status: 301, size: 0, uri: "http://old.org/", hop_path: null, via: null, media_type: "text/html", fetched: 2026-11-19 00:00:00.000 +00:00, took_ms: 1, digest: null, source: null, annotations: [], warc_filename: null, warc_offset: null}"#,
            r#"{logged: 2026-11-20 12:00:00.001 +00:00, status: 200, size: 335, uri: "http://a.org/", hop_path: null, via: null, media_type: "text/html", fetched: 2026-11-20 12:00:00.000 +00:00, took_ms: 6, digest: "sha1:EYLOBZUVJB7A6T6F3XAYYV647FOOLBI2", source: "http://a.org/", annotations: ["unchanged", "5vis"], warc_filename: "one.warc.gz", warc_offset: 77}"#,
            r#"{logged: 2026-11-20 12:00:01.002 +00:00, status: -2, size: null, uri: "http://b.org/x", hop_path: "LE", via: "http://a.org/", media_type: "no-type", fetched: null, took_ms: null, digest: null, source: null, annotations: [], warc_filename: null, warc_offset: null}"#,
        ];
        assert_eq!(rows, expected);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 3, "no unfinished file is left");
    }
}
