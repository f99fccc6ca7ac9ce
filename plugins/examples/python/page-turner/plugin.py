"""Turns the pages of a digitised book in the viewer of a library, so that the crawl gets every page image.

The library's item pages show a cover. A click opens the viewer, which loads a page image for each click on "next". To use this
for another library, change `uris` and the selectors. An override in the profile limits it to one site. The memory of a step is the
number of pages turned so far."""

from dataclasses import dataclass
from datetime import timedelta

from opilio_plugin import (
    Action,
    Click,
    Page,
    PageBehavior,
    Scroll,
    SettingsFault,
    StepPlan,
    Visit,
    WaitForNetwork,
    WaitForSelector,
    count,
    setting,
    warn,
)

#: Longest waits, for the viewer and for the image of a page.
VIEWER_TIME_MAX = timedelta(seconds=20)
IMAGE_TIME_MAX = timedelta(seconds=5)


class PageTurner(PageBehavior):
    name = "page-turner"
    summary = "Opens the viewer of a digitised book and turns all its pages."
    media_types = ["text/html"]
    uris = [r"/items/[0-9]+$"]

    @dataclass
    class Settings:
        open: str = setting(".item-cover a.open-viewer", "CSS selector of the link that opens the viewer.", overridable=True)
        image: str = setting(".viewer img.page", "CSS selector of a page image in the viewer.", overridable=True)
        next: str = setting(
            ".viewer button.next:not([disabled])", "CSS selector of the button for the next page.", overridable=True
        )
        pages_max: int = setting(500, "Maximum number of pages to turn.", overridable=True, minimum=1)

    def __init__(self, settings: Settings):
        for name in ("open", "image", "next"):
            if not getattr(settings, name).strip():
                raise SettingsFault(f"/{name}", "is empty; write a CSS selector")
        self.settings = settings

    def step(self, page: Page, visit: Visit, memory: bytes) -> StepPlan:
        settings = self.settings
        if page.step == 0:
            return StepPlan([Click(settings.open), WaitForSelector(settings.image, VIEWER_TIME_MAX)], [settings.next])
        if page.step == 1 and page.results[1].name != "done":
            warn(f"the viewer did not open: {page.results[1].name}")
            return StepPlan(finished=True)
        turned = int(memory or b"0")
        if not page.count(settings.next) or turned >= settings.pages_max:
            count("pages-turned", turned)
            return StepPlan([Scroll("top")], finished=True)
        turn: list[Action] = [Click(settings.next), WaitForNetwork(IMAGE_TIME_MAX)]
        return StepPlan(turn, [settings.next], str(turned + 1).encode())


plugins = [PageTurner]
