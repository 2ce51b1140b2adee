// Opens boards in Chromium, saves what it draws, and returns what the page measures.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import puppeteer from 'puppeteer-core';

const TIMEOUT = 60_000;

// WIDE is the width of pictures of first screens.
const WIDE = 1600;

/** Returns the name of the picture of a view's first screen, in the dark theme. */
export const firstScreen = (name) => `${name.replaceAll('/', '-')}-first.png`;

/** Starts Chromium; it needs no display. */
export function startBrowser(program) {
  return puppeteer.launch({ executablePath: program, args: ['--no-sandbox', '--hide-scrollbars', '--force-color-profile=srgb'], protocolTimeout: TIMEOUT });
}

// ATTEMPTS: Chromium gives up its requests when an address of the machine changes,
// which has nothing to do with the board.
const ATTEMPTS = 3;
const pathname = (message) => new URL(message.url()).pathname;
const networkChanged = (run) => run.errors.some((error) => error.includes('ERR_NETWORK_CHANGED'));

/** Draws one view, again if the machine's network changed meanwhile. */
export async function draw(browser, address, view, settings) {
  let run = await drawOnce(browser, address, view, settings);
  for (let attempt = 1; attempt < ATTEMPTS && networkChanged(run); attempt++) {
    run = await drawOnce(browser, address, view, settings);
  }
  return run;
}

/**
 * Draws one view once. Returns the measurements of its panels, and as errors what the page
 * logged and could not load.
 */
async function drawOnce(browser, address, view, { theme, width, to, rows, folder }) {
  const page = await browser.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.stack));
  page.on('requestfailed', (request) => errors.push(`${request.failure().errorText} ${pathname(request)}`));
  // Queries that Prometheus refuses are errors of their panels.
  page.on('response', (response) => response.status() >= 400 && !pathname(response).startsWith('/api/') && errors.push(`${response.status()} ${pathname(response)}`));
  page.on('console', (message) => message.type() === 'error' && !message.text().startsWith('Failed to load resource') && errors.push(message.text()));
  try {
    await page.setViewport({ width, height: 1000 });
    const parameters = new URLSearchParams({ board: view.board, theme, to, rows });
    for (const [name, value] of Object.entries(view.variables ?? {})) {
      [value].flat().forEach((each) => parameters.append(`var-${name}`, each));
    }
    await page.goto(`${address}/?${parameters}`, { timeout: TIMEOUT });
    await page.waitForSelector('body[data-ready], body[data-failure]', { timeout: TIMEOUT });
    const failure = await page.evaluate(() => document.body.dataset.failure);
    if (failure) {
      throw new Error(failure);
    }
    await page.waitForNetworkIdle({ idleTime: 200, timeout: TIMEOUT });
    const measured = await page.evaluate(() => window.measure());
    await mkdir(folder, { recursive: true });
    const name = view.name.replaceAll('/', '-');
    await page.screenshot({ path: path.join(folder, `${name}-${theme}-${width}.png`), fullPage: true });
    if (theme === 'dark' && width === WIDE) {
      await page.screenshot({ path: path.join(folder, firstScreen(view.name)) });
    }
    return { ...measured, errors: [...measured.errors, ...errors] };
  } catch (error) {
    return { panels: [], errors: [error.message, ...errors], height: 0 };
  } finally {
    await page.close();
  }
}
