//! A crawl in which the example page behaviours operate pages in Chromium.

use std::path::Path;

use anyhow::{Result, ensure};
use opilio_test_web::{Reply, Web};

use super::crawl::{Crawl, requested_paths};
use super::steps::Steps;
use crate::command::{chromium, is_root};
use crate::repository::root;

/// With this variable, a machine without Chromium is an error. CI sets it.
const REQUIRED: &str = "OPILIO_TEST_CHROMIUM";

/// A part that a button loads. It contains another button, and a link that appears only then.
const COLLAPSED: &str = r#"<button id="outer">Read more</button><script>
    outer.onclick = () => {
        outer.remove();
        document.body.insertAdjacentHTML("beforeend", '<details><summary>Sources</summary></details>');
        const details = document.querySelector("details");
        details.ontoggle = () => details.insertAdjacentHTML("beforeend", "<a href=" + "/sources>a page</a>");
    };
    </script><a href="/items/7">a book</a><a href="/museum">a museum</a>"#;

/// A book of three pages.
const BOOK: &str = r##"<p class="item-cover"><a class="open-viewer" href="#">read</a></p><script>
    let number = 0;
    const turn = () => {
        number += 1;
        const last = number === 3 ? "disabled" : "";
        const image = "/images/" + number + ".gif";
        document.querySelector(".viewer").innerHTML =
            '<img class="page" width="9" height="9" src="' + image + '"><button class="next" ' + last + '>next</button>';
        document.querySelector(".next").onclick = turn;
    };
    document.querySelector(".open-viewer").onclick = () => {
        document.body.insertAdjacentHTML("beforeend", '<div class="viewer"></div>');
        turn();
    };
    </script>"##;

/// Tabs of which the second one loads a picture, a carousel of three pictures, and a map that shows the fifth level.
const MUSEUM: &str = r#"<button role="tab">Works</button><button role="tab" id="letters">Letters</button>
    <img id="slide" width="9" height="9" src="/slides/1.gif"><button class="carousel-control-next">next</button>
    <div id="map"><button class="leaflet-control-zoom-in">+</button><button class="leaflet-control-zoom-out">-</button></div>
    <script>
    const picture = (source) => '<img width="9" height="9" src="' + source + '.gif">';
    letters.onclick = () => letters.insertAdjacentHTML("afterend", picture("/letters/1"));
    let number = 1;
    document.querySelector(".carousel-control-next").onclick = () => {
        number = number % 3 + 1;
        slide.src = "/slides/" + number + ".gif";
    };
    let level = 5;
    const zoom = (by) => {
        level += by;
        map.insertAdjacentHTML("beforeend", picture("/tiles/" + level));
    };
    document.querySelector(".leaflet-control-zoom-in").onclick = () => zoom(1);
    document.querySelector(".leaflet-control-zoom-out").onclick = () => zoom(-1);
    </script>"#;

/// Pictures that are loaded only if the behaviours turn the pages of the book, open the tab, wait for all slides, and zoom in and
/// out by two levels.
const IMAGES: [&str; 8] = [
    "/images/1.gif",
    "/images/2.gif",
    "/images/3.gif",
    "/letters/1.gif",
    "/slides/2.gif",
    "/slides/3.gif",
    "/tiles/3.gif",
    "/tiles/7.gif",
];

/// The behaviours: their names in the profile, and their projects.
const BEHAVIORS: [(&str, &str); 5] = [
    ("more", "javascript/read-more"),
    ("turner", "python/page-turner"),
    ("tabs", "go/tab-tour"),
    ("carousels", "c/carousel-tour"),
    ("maps", "typescript/map-zoom"),
];

/// Adds the crawl to the steps.
pub(super) fn crawl(steps: &mut Steps, opilio: &Path, home: &Path) {
    let crawl = Crawl {
        opilio: opilio.to_owned(),
        folder: home.join("crawls").join("browser"),
    };
    steps.add("crawls", "page behaviours in a browser", move || {
        if chromium().is_ok() || std::env::var_os(REQUIRED).is_some() {
            behave(&crawl)?;
        }
        Ok(())
    });
}

fn behave(crawl: &Crawl) -> Result<()> {
    const SITE: &str = "browser.localhost";
    let mut web = Web::builder();
    let site = web.site(SITE);
    site.page("/", Reply::html(COLLAPSED));
    site.page("/items/7", Reply::html(BOOK));
    site.page("/museum", Reply::html(MUSEUM));
    site.page("/sources", Reply::html("found"));
    for image in IMAGES {
        site.page(image, Reply::ok("image/gif", "GIF89a"));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;

    // Chromium's own sandbox does not run as root.
    let sandbox = !is_root();
    let mut lines = format!(
        "strategy = \"snapshot\"\nbrowser.render = \"always\"\nbrowser.sandbox = {sandbox}\n\
         stacks.behave = {:?}\n",
        BEHAVIORS.map(|(name, _)| name)
    );
    for (name, project) in BEHAVIORS {
        let folder = root().join("plugins/examples").join(project);
        let file = folder
            .join(folder.file_name().unwrap_or_default())
            .with_extension("wasm");
        lines += &format!("plugins.{name}.component = {file:?}\n");
    }
    let output = crawl.run(&[web.url(SITE, "/")], &lines)?;
    output.ended_with(0)?;
    for (name, _) in BEHAVIORS {
        let figures = output.figures(name)?;
        ensure!(
            figures["calls"].as_u64() > Some(1) && figures["faults"] == serde_json::json!({}),
            "{name} was not called for several steps, or failed: {figures}"
        );
    }
    let requested = requested_paths(&web);
    for path in IMAGES.into_iter().chain(["/sources"]) {
        ensure!(
            requested.iter().any(|one| one == path),
            "{path} was not requested, so a behaviour did not operate its page: {requested:?}\n{}",
            output.text
        );
    }
    Ok(())
}
