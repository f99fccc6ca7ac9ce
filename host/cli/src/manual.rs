//! Manual pages and shell completions. They are made from the same description of the command line as `--help`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit;

/// The command line of `opilio completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The command line of `opilio man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write one page per command into this directory, such as opilio-job-status.1 [default: print the page of opilio].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the script.
pub(crate) fn completions<C: CommandFactory>(args: &CompletionsArgs) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "opilio", &mut script);
    print(&script)
}

/// Prints a page, or writes all pages.
pub(crate) fn man<C: CommandFactory>(args: &ManArgs) -> Result<u8> {
    let mut command = C::command();
    // Builds the full names of commands and the options common to all.
    command.build();
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        page_of(command, "opilio").render(&mut page)?;
        return print(&page);
    };
    std::fs::create_dir_all(dir)
        .with_context(|| format!("cannot create directory {}", dir.display()))?;
    write_pages(&command, "opilio", dir)?;
    Ok(exit::OK)
}

/// Creates a page with header and footer: title, version and manual.
fn page_of(command: clap::Command, name: &str) -> Man {
    Man::new(command)
        .title(name.to_uppercase())
        .source(concat!("opilio ", env!("CARGO_PKG_VERSION")))
        .manual("Opilio")
}

/// Writes the page of a command, then those of its subcommands.
fn write_pages(command: &clap::Command, name: &str, dir: &Path) -> Result<()> {
    let mut page = Vec::new();
    page_of(command.clone(), name).render(&mut page)?;
    let file = dir.join(format!("{name}.1"));
    std::fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
    for below in command.get_subcommands() {
        if below.get_name() != "help" && !below.is_hide_set() {
            write_pages(below, &format!("{name}-{}", below.get_name()), dir)?;
        }
    }
    Ok(())
}

fn print(text: &[u8]) -> Result<u8> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        // The reader has closed the output.
        Err(problem) if problem.kind() != io::ErrorKind::BrokenPipe => {
            Err(problem).context("cannot write standard output")
        }
        _ => Ok(exit::OK),
    }
}
