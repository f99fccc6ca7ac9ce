//! Import of URIs from files and export of URIs to the client, while the crawl continues.

use std::io::{self, Write};
use std::path::PathBuf;

use jiff::Timestamp;

use opilio_uri::{HopPath, Uri};

use super::admin::PART_PAUSE;
use super::answer::{Respond, done, listened};
use super::{
    CommandResponse, ControlError, DoneElsewhere, ErrorKind, ExportFormat, ImportResult, JobAdmin,
    SourceRead, UriSelection,
};
use opilio_job::transfer::{
    self, DoneUris, Import, ImportProgress, ImportReport, ImportedRecord, SourceReport,
    TransferError,
};
use opilio_visit::policy;

/// Maximum number of imported URIs that go to the frontier at once.
const IMPORT_PART: usize = 2_000;

/// Size of the pieces of an export, in bytes.
const TEXT_BYTES: usize = 64 * 1024;

impl JobAdmin<'_> {
    pub(super) fn export(
        &self,
        format: ExportFormat,
        which: &UriSelection,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let selection = which.selection()?;
        let records = self.frontier().records(selection.key_prefix());
        let mut out = Pieces {
            text: Vec::with_capacity(TEXT_BYTES),
            respond,
        };
        let written = match format {
            ExportFormat::JsonLines => transfer::write_json_lines(records, &selection, &mut out),
            ExportFormat::Journal => transfer::write_journal(records, &selection, &mut out),
            ExportFormat::Cdxj => {
                transfer::write_cdxj(records, &selection, &self.job.join("scratch"), &mut out)
            }
        };
        let count = written.map_err(|problem| transfer_error(&problem))?;
        Ok(done(&format!("{count} URIs"), respond))
    }

    pub(super) fn import(
        &self,
        files: &[PathBuf],
        elsewhere: DoneElsewhere,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        self.import_those(files, elsewhere, &|_, _| true, respond)
    }

    /// Imports the URIs of these files that `admits` accepts. Lines about a URI are combined, even from different files.
    pub(super) fn import_those(
        &self,
        files: &[PathBuf],
        elsewhere: DoneElsewhere,
        admits: &dyn Fn(&Uri, &HopPath) -> bool,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let import = Import {
            sources: files.iter().map(|file| (file.clone(), None)).collect(),
            folder: self.job.join("scratch"),
        };
        let mut gathered = import
            .gather(|progress| {
                if let ImportProgress::Read(_, lines) = progress {
                    respond(CommandResponse::Progress {
                        examined: lines,
                        meant: 0,
                    });
                }
            })
            .map_err(|problem| transfer_error(&problem))?;
        for source in &gathered.sources {
            respond(source_answer(source));
        }
        let elsewhere = match elsewhere {
            DoneElsewhere::Known => DoneUris::Included,
            DoneElsewhere::Fetched => DoneUris::Scheduled,
            DoneElsewhere::LeftOut => DoneUris::LeftOut,
        };
        let mut total = ImportReport::default();
        let mut brought = 0;
        loop {
            // The next records are read before the frontier is locked.
            let part: Vec<Result<ImportedRecord, TransferError>> =
                gathered.by_ref().take(IMPORT_PART).collect();
            if part.is_empty() {
                break;
            }
            brought += part.len() as u64;
            let report = transfer::import(
                part,
                elsewhere,
                &mut self.frontier(),
                |uri, hops| {
                    admits(&uri, &hops)
                        .then(|| policy::candidate(self.profile, uri, hops, None, None))
                },
                Timestamp::now(),
                |_| {},
            )
            .map_err(|problem| transfer_error(&problem))?;
            add(&mut total, report);
            self.wake_dispatcher();
            listened(respond(CommandResponse::Progress {
                examined: brought,
                meant: total.scheduled + total.included,
            }))?;
            std::thread::sleep(PART_PAUSE);
        }
        respond(CommandResponse::Imported(ImportResult {
            scheduled: total.scheduled,
            included: total.included,
            known: total.known,
            prerequisites: total.prerequisites,
            left_out: total.left_out,
            refused: total.refused,
            refusals: total
                .refusals
                .iter()
                .map(|(uri, why)| format!("{uri}: {why}"))
                .collect(),
        }));
        Ok(format!(
            "{} scheduled, {} included, {} known before, {} left out, {} refused",
            total.scheduled,
            total.included,
            total.known,
            total.left_out + total.prerequisites,
            total.refused
        ))
    }
}

fn transfer_error(problem: &TransferError) -> ControlError {
    let kind = match problem {
        // The request names files that cannot be imported.
        TransferError::Unrecognised { .. } | TransferError::Read { .. } => ErrorKind::Request,
        TransferError::Write(source) if source.kind() == io::ErrorKind::BrokenPipe => {
            ErrorKind::State
        }
        _ => ErrorKind::Failure,
    };
    ControlError::new(kind, opilio_stacks::chain(problem))
}

fn source_answer(source: &SourceReport) -> CommandResponse {
    let bad = source
        .shown
        .iter()
        .map(|bad| format!("line {}: {}", bad.line, bad.problem));
    let damages = source.extent.damages.iter().map(ToString::to_string);
    CommandResponse::Source(SourceRead {
        file: source.path.clone(),
        format: source.format.name().to_owned(),
        lines: source.extent.lines,
        bad_lines: source.bad_lines,
        problems: bad.chain(damages).collect(),
    })
}

fn add(total: &mut ImportReport, part: ImportReport) {
    total.scheduled += part.scheduled;
    total.included += part.included;
    total.known += part.known;
    total.prerequisites += part.prerequisites;
    total.left_out += part.left_out;
    total.refused += part.refused;
    let room = transfer::BAD_LINES_SHOWN.saturating_sub(total.refusals.len());
    total.refusals.extend(part.refusals.into_iter().take(room));
}

/// Output of an export, in pieces of whole lines.
struct Pieces<'s> {
    text: Vec<u8>,
    respond: Respond<'s>,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= TEXT_BYTES && self.text.ends_with(b"\n") {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.text).into_owned();
        self.text.clear();
        match (self.respond)(CommandResponse::Text { text }) {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}
