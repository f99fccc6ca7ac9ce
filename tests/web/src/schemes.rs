//! Servers for FTP and WHOIS. Each listens on a free port of 127.0.0.1 until the process ends, because a blocking listener cannot
//! be stopped.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Content of a path: a file, or lines in the format of MLSD if the path ends in a slash.
pub type Content = fn(&str) -> Option<&'static [u8]>;

/// Starts a server of files for clients that use MLSD and EPSV. Returns its port.
///
/// # Errors
/// No port can be bound.
pub fn ftp(content: Content) -> io::Result<u16> {
    listen(move |stream, _| ftp_session(&stream, content))
}

/// Starts a server that answers queries. `answer` gets the query and the port. Returns the port.
///
/// # Errors
/// No port can be bound.
pub fn whois(answer: fn(&str, u16) -> String) -> io::Result<u16> {
    listen(move |mut stream, port| {
        let mut question = String::new();
        BufReader::new(&stream).read_line(&mut question)?;
        stream.write_all(answer(question.trim(), port).as_bytes())
    })
}

fn listen(
    serve: impl Fn(TcpStream, u16) -> io::Result<()> + Send + Clone + 'static,
) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            // A client that disconnects is not an error of the server.
            std::thread::spawn(move || serve(stream, port));
        }
    });
    Ok(port)
}

fn ftp_session(stream: &TcpStream, content: Content) -> io::Result<()> {
    let mut control = stream;
    let mut say = |line: &str| control.write_all(format!("{line}\r\n").as_bytes());
    let mut data: Option<TcpListener> = None;
    let mut here = String::new();
    say("220 welcome")?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let (command, argument) = line.split_once(' ').unwrap_or((&line, ""));
        match command {
            "USER" => say("331 and you are?")?,
            "PASS" => say("230 come in")?,
            "TYPE" => say("200 as it is")?,
            "CWD" => {
                here = format!("{}/", argument.trim_end_matches('/'));
                match content(&here) {
                    Some(_) => say("250 there")?,
                    None => say("550 no such directory")?,
                }
            }
            "EPSV" => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let port = listener.local_addr()?.port();
                data = Some(listener);
                say(&format!("229 here (|||{port}|)"))?;
            }
            "RETR" | "MLSD" => {
                let path = if command == "MLSD" { &here } else { argument };
                match (content(path), data.take()) {
                    (Some(content), Some(listener)) => {
                        say("150 here it comes")?;
                        let (mut to, _) = listener.accept()?;
                        to.write_all(content)?;
                        drop(to);
                        say("226 done")?;
                    }
                    (Some(_), None) => say("425 where to?")?,
                    (None, _) => say("550 no such file")?,
                }
            }
            _ => say("502 what?")?,
        }
    }
    Ok(())
}
