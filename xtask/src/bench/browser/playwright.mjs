// Opens pages in Chromium as a bare loop does. Each worker has a browser, and opens one page after the other in it, until the
// page's network is idle. It keeps the bodies of the responses until it closes the page, and nothing else.
//
// Usage: node playwright.mjs INPUT OUTPUT. INPUT is JSON: executable, sandbox, workers, urls. OUTPUT becomes JSON: pages, bodies.

import { readFileSync, writeFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [input, output] = process.argv.slice(2);
const { executable, sandbox, workers, urls } = JSON.parse(readFileSync(input, "utf8"));
const done = { pages: 0, bodies: 0 };
let next = 0;

async function open(browser, url) {
  // As in a crawl, a page sees neither cookies nor cached files of another one.
  const context = await browser.newContext();
  const page = await context.newPage();
  const bodies = [];
  page.on("response", (response) => bodies.push(response.body()));
  await page.goto(url, { waitUntil: "load" });
  await page.waitForLoadState("networkidle");
  done.bodies += (await Promise.all(bodies)).length;
  done.pages += 1;
  await context.close();
}

async function work() {
  const browser = await chromium.launch({ executablePath: executable, chromiumSandbox: sandbox });
  while (next < urls.length) {
    const url = urls[next];
    next += 1;
    await open(browser, url);
  }
  await browser.close();
}

await Promise.all(Array.from({ length: workers }, work));
writeFileSync(output, JSON.stringify(done));
