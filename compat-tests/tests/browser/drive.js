// Drives headless Chromium: `node drive.js SCENARIO URL CONSOLE_URL SCREENSHOTS`, the last may be empty.
// Prints a line for each thing that was seen, and ends with 1 and what is wrong when something is.
'use strict';
const {execFileSync} = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const puppeteer = require('puppeteer-core');

const [scenario, url, consoleUrl, screenshots] = process.argv.slice(2);
const PATIENCE = 60_000;
const MAX_SCREENSHOT_BYTES = 150_000;
const DESKTOP = {width: 1280, height: 940};
const PHONE = {width: 360, height: 760, isMobile: true, hasTouch: true};

const seen = text => console.log(`seen: ${text}`);

function check(isSo, what) {
  if (!isSo) throw new Error(what);
}

/** A page that fails the test when it logs an error, throws one, or asks for something from elsewhere. */
async function open(browser, address, view = DESKTOP, scheme = 'light') {
  const page = await browser.newPage();
  page.problems = [];
  page.on('console', message => ['error', 'warn'].includes(message.type()) && page.problems.push(message.text()));
  page.on('pageerror', error => page.problems.push(String(error)));
  page.on('request', request => {
    const {protocol, host} = new URL(request.url());
    if (protocol !== 'data:' && host !== new URL(address).host) page.problems.push(`a request to ${request.url()}`);
  });
  page.setDefaultTimeout(PATIENCE);
  await page.emulateMediaFeatures([
    {name: 'prefers-color-scheme', value: scheme}, {name: 'prefers-reduced-motion', value: 'reduce'},
  ]);
  await page.setViewport(view);
  await page.goto(address, {waitUntil: 'domcontentloaded'});
  await page.waitForFunction(() => document.getElementById('state').textContent.includes('live'));
  return page;
}

async function close(page) {
  check(page.problems.length === 0, `the page has problems: ${page.problems.join('; ')}`);
  await page.close();
}

/** Waits for a condition in the page; the text says what did not come. */
async function until(page, what, condition, ...args) {
  try {
    await page.waitForFunction(condition, {polling: 100}, ...args);
  } catch (error) {
    const text = await page.evaluate(() => document.body.innerText);
    throw new Error(`${what} did not come: ${error.message}\n${text}`);
  }
  seen(what);
}

const click = (page, selector) => page.$eval(selector, element => element.click());

/** Everything that can be used has a name, and the page fits its width. */
async function checkAccess(page, where) {
  const nameless = [];
  const walk = node => {
    const usable = ['button', 'link', 'textbox', 'searchbox', 'combobox', 'checkbox', 'columnheader', 'rowheader'];
    if (usable.includes(node.role) && !(node.name || '').trim()) nameless.push(node.role);
    for (const child of node.children || []) walk(child);
  };
  walk(await page.accessibility.snapshot({interestingOnly: false}));
  check(nameless.length === 0, `${where}: without a name: ${nameless.join(', ')}`);
  const facts = await page.evaluate(() => ({
    language: document.documentElement.lang,
    title: document.title,
    headings: document.querySelectorAll('h1').length,
    scroll: document.documentElement.scrollWidth,
    width: document.documentElement.clientWidth,
    live: document.querySelectorAll('[aria-live], [role=status], [role=log], [role=alert]').length,
    unscoped: document.querySelectorAll('th:not([scope])').length,
  }));
  check(facts.language === 'en' && facts.title && facts.headings === 1, `${where}: language, title or heading is missing`);
  check(facts.live > 0, `${where}: nothing is announced`);
  check(facts.unscoped === 0, `${where}: a table header without a scope`);
  check(facts.scroll <= facts.width, `${where}: ${facts.scroll} pixels wide in a window of ${facts.width}`);
  seen(`${where} can be used by name and fits`);
}

/** Text stands out from what is behind it as WCAG AA asks for. */
async function checkContrast(page, where) {
  const weak = await page.evaluate(() => {
    const parse = colour => {
      const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return {rgb: [r, g, b], alpha: a / 255};
    };
    const light = rgb => rgb.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = element => {
      for (let at = element; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor);
        if (colour.alpha > 0.99) return colour.rgb;
      }
      return [255, 255, 255];
    };
    const found = new Set();
    for (const element of document.querySelectorAll('body *')) {
      const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
      if (!own || !element.checkVisibility() || element.closest(':disabled, .hidden, script, style')) continue;
      const [a, b] = [light(parse(getComputedStyle(element).color).rgb), light(behind(element))];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (contrast < 4.5) found.add(`${element.tagName} ${element.className} "${element.textContent.slice(0, 20)}" ${contrast.toFixed(1)}`);
    }
    return [...found];
  });
  check(weak.length === 0, `${where}: hard to read: ${weak.join('; ')}`);
  seen(`${where} can be read`);
}

async function screenshot(page, name) {
  if (!screenshots) return;
  fs.mkdirSync(screenshots, {recursive: true});
  const file = path.join(screenshots, `${name}.png`);
  await page.screenshot({path: file});
  // 256 colours are enough for these pages; only who makes screenshots needs this program.
  execFileSync('pngquant', ['--force', '--speed', '1', '--output', file, '256', file]);
  const {size} = fs.statSync(file);
  check(size < MAX_SCREENSHOT_BYTES, `${file} has ${size} bytes`);
  seen(`${name}.png, ${size} bytes`);
}

async function control(page, action) {
  const answer = await page.evaluate(async body => {
    const answer = await fetch('/control', {method: 'POST', body, headers: {'X-Playground-Token': token}});
    return `${answer.status} ${await answer.text()}`;
  }, JSON.stringify(action));
  check(answer.startsWith('200 '), `${JSON.stringify(action)}: ${answer}`);
}

const isrIs = isr => [...document.querySelectorAll('#summary .badge')].some(badge => badge.textContent === `ISR {${isr}}`);
const leaderIs = broker => document.querySelector(`.lane.leader[data-broker="${broker}"]`) !== null;

const scenarios = {
  /** The console shows three brokers and a topic, live, in each form. */
  async console(browser) {
    const playground = await open(browser, url);
    await control(playground, {do: 'produce', count: 5});
    const page = await open(browser, consoleUrl);
    await until(page, 'three brokers', () => document.querySelectorAll('#brokers tr').length === 3
      && document.getElementById('brokers').textContent.split('✓').length === 4);
    await until(page, 'a controller', () => document.getElementById('controllers').textContent.includes('active'));
    await until(page, 'the topic with its replicas and offsets', () => {
      const row = document.querySelector('#partitions tr');
      return row && row.textContent.startsWith('topic-') && row.querySelectorAll('.replica').length === 3
        && row.querySelectorAll('.offsets b').length === 6 && row.textContent.split('LEO 5').length === 4;
    });
    await control(playground, {do: 'produce', count: 2});
    await until(page, 'a change without a reload', () =>
      document.querySelector('#partitions tr').textContent.split('LEO 7').length === 4);
    await page.type('#topic', 'no-such-topic');
    await until(page, 'no topic of another name', () => !document.getElementById('no-partitions').hidden);
    await page.$eval('#topic', element => { element.value = ''; element.dispatchEvent(new Event('input')); });
    await until(page, 'all topics again', () => document.querySelectorAll('#partitions tr').length === 1);
    await checkAccess(page, 'the console');
    await checkContrast(page, 'the console');
    await screenshot(page, 'console-light');
    await close(page);
    const dark = await open(browser, consoleUrl, DESKTOP, 'dark');
    await until(dark, 'the topic in the dark', () => document.querySelectorAll('.replica').length === 3);
    await checkContrast(dark, 'the dark console');
    await screenshot(dark, 'console-dark');
    await dark.keyboard.press('Tab');
    check(await dark.evaluate(() => document.activeElement.className === 'skip'), 'the first key does not lead past the header');
    await close(dark);
    const phone = await open(browser, consoleUrl, PHONE);
    await until(phone, 'the topic on a phone', () => document.querySelectorAll('.replica').length === 3);
    await checkAccess(phone, 'the console on a phone');
    await screenshot(phone, 'console-phone');
    await close(phone);
    await close(playground);
  },

  /** By hand: kill the leader, see the new one; lower the ISR, see the refusal. */
  async playground(browser) {
    const page = await open(browser, url);
    await until(page, 'broker 1 leads', leaderIs, 1);
    await page.focus('#produce-5');
    await page.keyboard.press('Enter');
    await until(page, 'five records in three logs, committed', () =>
      document.querySelectorAll('.record.in').length === 15 && document.querySelectorAll('.record.open').length === 0);
    await checkAccess(page, 'the playground');
    await checkContrast(page, 'the playground');
    await screenshot(page, 'playground-light');
    await click(page, '[aria-label="kill -9 broker 1"]');
    await until(page, 'the leader down', () => document.querySelector('[data-broker="1"]').textContent.includes('down'));
    await until(page, 'another leader', () => {
      const leader = document.querySelector('.lane.leader');
      return leader && leader.dataset.broker !== '1';
    });
    await until(page, 'both epochs in the events', () => document.getElementById('events').textContent.includes('Leader epoch: 0 → 1.'));
    await until(page, 'two in sync', isrIs, '2, 3');
    await click(page, '[aria-label="kill -9 broker 3"]');
    await until(page, 'one in sync', isrIs, '2');
    await click(page, '#produce-1');
    await until(page, 'the refusal', () => document.querySelector('#produced .refused')?.textContent.includes('NOT_ENOUGH_REPLICAS'));
    await page.select('#min-isr', '1');
    await until(page, 'min.insync.replicas set', () => document.getElementById('events').textContent.includes('min.insync.replicas is 1.'));
    await click(page, '#produce-1');
    await until(page, 'an acknowledgement by one', () => document.querySelector('#produced li.ok') !== null
      && document.querySelector('#produced li').textContent.includes('acknowledged'));
    await checkContrast(page, 'the playground in trouble');
    await screenshot(page, 'playground-refusal');
    await page.focus('[aria-label="Start broker 1"]');
    await page.keyboard.press('Enter');
    await until(page, 'the focus where the button was', () => document.activeElement.ariaLabel === 'kill -9 broker 1');
    await click(page, '[aria-label="Start broker 3"]');
    await until(page, 'all in sync again', isrIs, '1, 2, 3');
    const button = await page.$('[aria-label="Freeze broker 3"]');
    await control(page, {do: 'rate', per_second: 20});
    await until(page, 'a record behind the dozen', () => Number(document.querySelector('.leo').textContent) > 14);
    check(await button.evaluate(element => element.isConnected), 'a button is another one after each record');
    await control(page, {do: 'rate', per_second: 0});
    await click(page, '[aria-label="Freeze broker 3"]');
    await until(page, 'broker 3 frozen', () => document.querySelector('[data-broker="3"]').textContent.includes('frozen'));
    await click(page, '[aria-label="Thaw broker 3"]');
    await until(page, 'broker 3 going on', isrIs, '1, 2, 3');
    await click(page, '#elect');
    await until(page, 'the preferred leader', leaderIs, 1);
    // Broker 3 lacks the last record when the others are gone.
    await click(page, '[aria-label="kill -9 broker 3"]');
    await until(page, 'two in sync once more', isrIs, '1, 2');
    await click(page, '#produce-1');
    await until(page, 'an acknowledgement by two', () => document.querySelector('#produced li').className === 'ok');
    await click(page, '[aria-label="kill -9 broker 2"]');
    await until(page, 'one in sync once more', isrIs, '1');
    await click(page, '[aria-label="kill -9 broker 1"]');
    await click(page, '[aria-label="Start broker 3"]');
    await until(page, 'nobody who leads', () => document.getElementById('summary').textContent.includes('no leader'));
    await click(page, '#unclean');
    await until(page, 'an unclean election', leaderIs, 3);
    check(await page.$eval('#events', log => log.textContent.includes('An unclean election')), 'the rule is not told');
    await close(page);
    const dark = await open(browser, url, DESKTOP, 'dark');
    await until(dark, 'records in the dark', () => document.querySelectorAll('.record.in').length > 0);
    await checkContrast(dark, 'the dark playground');
    await screenshot(dark, 'playground-dark');
    await close(dark);
    const phone = await open(browser, url, PHONE);
    await until(phone, 'records on a phone', () => document.querySelectorAll('.record.in').length > 0);
    await checkAccess(phone, 'the playground on a phone');
    await phone.$eval('.stage', element => element.scrollIntoView());
    await screenshot(phone, 'playground-phone');
    await close(phone);
  },

  /** Every guided script, by its buttons, to its end. */
  async lessons(browser) {
    const page = await open(browser, url);
    const lessons = await page.$$eval('[data-lesson]', buttons => buttons.map(button => button.dataset.lesson).filter(Boolean));
    check(lessons.length === 6, `six scripts, not ${lessons.length}`);
    for (const lesson of lessons) {
      await click(page, `#lessons [data-lesson="${lesson}"]`);
      await until(page, `${lesson} begins`, () => !document.getElementById('lesson').hidden);
      const steps = await page.$$eval('#steps li', items => items.length);
      for (let step = 1; step <= steps; step++) {
        await until(page, `${lesson}: step ${step} can be done`, () => document.getElementById('next').getAttribute('aria-disabled') === 'false');
        const label = await page.$eval('#next', button => button.textContent);
        check(label.startsWith('Next: '), `${lesson}: ${label}`);
        await click(page, '#next');
        await until(page, `${lesson}: ${label}`, done => document.querySelectorAll('#steps .done').length === done
          || document.querySelector('#steps .failed'), step);
        const failed = await page.evaluate(() => document.querySelector('#steps .failed') && document.getElementById('lesson').innerText);
        check(!failed, `${lesson} failed:\n${failed}`);
        if (lesson === 'network-partition' && step === 4) await screenshot(page, 'playground-lesson');
      }
      await until(page, `${lesson} is done`, () => document.getElementById('lesson-detail').textContent.startsWith('✓ Done'));
      await checkAccess(page, lesson);
      await click(page, '#next');
      await until(page, 'the scripts again', () => !document.getElementById('lessons').hidden);
    }
    await close(page);
  },
};

async function main() {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    // As root, and in containers, Chromium has neither its sandbox nor much shared memory; it opens our pages only.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--hide-scrollbars', '--disable-lcd-text'],
  });
  try {
    await scenarios[scenario](browser);
  } finally {
    await browser.close();
  }
}

main().then(() => console.log('done'), error => {
  console.error(error.stack || String(error));
  process.exit(1);
});
