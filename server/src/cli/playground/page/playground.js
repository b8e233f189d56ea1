// The playground's picture: lanes of records by offset, the lesson, the answers to the producer, the events.

const CELLS = 12, CELLS_ON_A_PHONE = 6, EPOCH_COLOURS = 6;
const token = new URLSearchParams(location.search).get('token') || '';

const processBadges = {
  running: null,
  starting: () => badge('info', '…', 'starting'),
  frozen: () => badge('warn', '❄', 'frozen'),
  down: () => badge('bad', '✕', 'down'),
};

function roleBadge(broker) {
  if (broker.role === 'none') return badge('', '', 'no replica');
  if (broker.role === 'leader') return badge('info', '★', 'leader');
  return broker.in_sync ? badge('good', '✓', 'in sync') : badge('warn', '▲', 'out of sync');
}

function recordCell(offset, record, broker, old) {
  const classes = old ? 'old' : '';
  const hw = broker.high_watermark;
  const mark = hw !== null && offset === hw - 1 ? ' hw' : '';
  if (!record) return h('li', {class: classes + mark}, h('div', {class: 'record gap'}, h('small', null, offset), h('span', {class: 'hidden'}, ' nothing')));
  const [, epoch, value] = record;
  const committed = hw !== null && offset < hw;
  const kind = `record in e${epoch % EPOCH_COLOURS}${committed ? '' : ' open'}${value.startsWith('dirty') ? ' dirty' : ''}${value.length > 5 ? ' long' : ''}`;
  return h('li', {class: classes + mark, title: `offset ${offset}, leader epoch ${epoch}: ${value}`},
    h('div', {class: kind}, h('small', null, offset), h('b', null, value), h('small', null, `e${epoch}`),
      h('span', {class: 'hidden'}, committed ? ' committed' : ' not committed')));
}

function logStrip(broker, last) {
  const end = Math.max(CELLS, last), start = end - CELLS;
  const records = new Map(broker.tail.map(record => [record[0], record]));
  const own = broker.log_end_offset;
  const label = `Log of broker ${broker.id}: ends at ${numberText(own)}, high watermark ${numberText(broker.high_watermark)}`;
  if (own !== null && start > 0 && own <= start) {
    return h('ol', {class: 'log', 'aria-label': label}, h('li', {class: 'behind'}, `${numberText(last - own)} records behind, its log ends at ${numberText(own)}`));
  }
  const cells = [];
  for (let offset = start; offset < start + CELLS; offset++) {
    const old = offset < last - CELLS_ON_A_PHONE || offset >= Math.max(last, CELLS_ON_A_PHONE);
    const record = records.get(offset);
    cells.push(recordCell(offset, record, broker, old));
  }
  return h('ol', {class: 'log', 'aria-label': label}, cells);
}

const isCutOff = (links, id) => links.filter(link => link.cut && (link.from === id || link.to === id)).length >= 6;

function tool(label, id, action) {
  return h('button', {type: 'button', 'aria-label': `${label} broker ${id}`, onclick: () => act(action)}, label);
}

function tools({id, process, console, isolated, slow}) {
  const down = process === 'down';
  return h('div', {class: 'tools', role: 'group', 'aria-label': `Broker ${id}`},
    down ? tool('Start', id, {do: 'start', broker: id}) : tool('kill -9', id, {do: 'kill', broker: id}),
    down ? null : process === 'frozen' ? tool('Thaw', id, {do: 'thaw', broker: id}) : tool('Freeze', id, {do: 'freeze', broker: id}),
    isolated ? tool('Reconnect', id, {do: 'reconnect', broker: id}) : down ? null : tool('Cut off', id, {do: 'isolate', broker: id}),
    down ? null : tool(slow ? 'Quicken' : 'Slow', id, {do: 'slow', broker: id, slow: !slow}),
    process === 'running' ? h('a', {href: `http://127.0.0.1:${console}/`, target: '_blank', rel: 'noopener', 'aria-label': `Console of broker ${id}`}, 'Console') : null);
}

function who({broker, isolated, cuts, slow}) {
  const process = processBadges[broker.process];
  const {believes} = broker;
  return h('div', null, h('div', {class: 'who'}, h('h3', null, `Broker ${broker.id}`), roleBadge(broker), process && process(),
    cuts ? badge('warn', '✂', isolated ? 'cut off' : `${cuts} ${cuts === 1 ? 'link' : 'links'} cut`) : null,
    slow ? badge('warn', '⧗', 'slow') : null,
    h('span', {class: 'offsets'},
      h('span', null, h('abbr', {title: 'log end offset'}, 'LEO'), ' ', h('b', {class: 'leo'}, numberText(broker.log_end_offset))),
      h('span', null, h('abbr', {title: 'high watermark'}, 'HW'), ' ', h('b', {class: 'high'}, numberText(broker.high_watermark)), broker.old_high_watermark ? ' (last known)' : null))),
  believes && h('p', {class: 'small'}, badge('warn', '▲', 'out of date'),
    ` Believes that ${believes.leader === broker.id ? 'it leads' : believes.leader === null ? 'nobody leads' : `broker ${believes.leader} leads`} in leader epoch ${believes.leader_epoch}.`));
}

/** Each part of a lane is drawn by itself, so that a button stays the same while records come. */
function drawLane(broker, links, last) {
  const id = broker.id;
  let item = byId(`lane-${id}`);
  if (!item) {
    item = h('li', {id: `lane-${id}`, 'data-broker': id}, h('div'), h('div'), h('div'));
    byId('lanes').append(item);
  }
  item.className = `lane ${broker.role} ${broker.process}`;
  const isolated = isCutOff(links, id);
  const slow = links.some(link => link.slow && link.to === id);
  // Links to one that is cut off from all are told there.
  const cuts = links.filter(link => link.cut && (link.from === id || link.to === id)
    && (isolated || !isCutOff(links, link.from === id ? link.to : link.from))).length;
  const {tail, epochs, console, process, ...facts} = broker;
  const [head, log, foot] = item.children;
  keyed(head, [[0, {broker: {...facts, process}, isolated, cuts, slow}]], who);
  keyed(log, broker.role === 'none' && !tail.length ? [] : [[0, {broker: {id, tail, log_end_offset: facts.log_end_offset, high_watermark: facts.high_watermark}, last}]],
    row => logStrip(row.broker, row.last));
  keyed(foot, [[0, {id, process, console, isolated, slow}]], tools);
}

function summary(partition) {
  const fact = (kind, label, value) => h('span', {class: `badge ${kind}`}, `${label} `, h('b', null, value));
  if (!partition.known) return [badge('warn', '▲', 'no broker answers')];
  return [
    partition.leader === null ? badge('bad', '✕', 'no leader') : fact('info', 'leader', `broker ${partition.leader}`),
    fact('info', 'leader epoch', numberText(partition.leader_epoch)),
    fact(partition.isr.length < partition.replicas.length ? 'warn' : 'good', 'ISR', `{${[...partition.isr].sort().join(', ')}}`),
    fact('', 'HW', numberText(partition.high_watermark)),
  ];
}

const stepSigns = {done: '✓', running: '…', failed: '✕', 'to do': '○'};

function stepItem({step, current}) {
  const shown = current || step.state === 'running' || step.state === 'failed';
  return h('li', {class: `${step.state}${shown ? ' current' : ''}`, 'aria-current': shown ? 'step' : null},
    h('span', {class: 'sign', 'aria-hidden': 'true'}, stepSigns[step.state]),
    h('b', null, step.title, h('span', {class: 'hidden'}, ` (${step.state})`)),
    shown ? h('p', null, step.text) : null,
    step.seen ? h('p', {class: 'seen'}, step.seen) : null);
}

function drawLesson(lesson) {
  byId('lessons').hidden = Boolean(lesson);
  byId('lesson').hidden = !lesson;
  byId('leave').hidden = !lesson;
  if (!lesson) return;
  say(byId('lesson-title'), lesson.title);
  say(byId('lesson-about'), lesson.about);
  keyed(byId('steps'), lesson.steps.map((step, at) => [at, {
    step,
    // Before it is done the next step is read, after it what was seen.
    current: at === lesson.at && lesson.stage !== 'preparing' || lesson.finished && at === lesson.steps.length - 1,
  }]), stepItem);
  const details = {
    preparing: 'The cluster is made ready: all brokers up, all links whole, a new topic …',
    'not ready': `The cluster is not ready: ${lesson.detail}`,
    ready: lesson.finished ? '✓ Done: every step was checked against the brokers.' : '',
    running: `Waiting for: ${lesson.detail}`,
    failed: `This did not come: ${lesson.detail}`,
  };
  say(byId('lesson-detail'), details[lesson.stage]);
  const next = byId('next');
  const title = lesson.steps[lesson.at] && lesson.steps[lesson.at].title;
  // Not disabled: who has reached it by keys is to stay there.
  next.setAttribute('aria-disabled', String(lesson.stage === 'preparing' || lesson.stage === 'running'));
  next.hidden = false;
  if (lesson.finished) say(next, 'Back to the scripts');
  else if (lesson.stage === 'failed' || lesson.stage === 'not ready') say(next, 'Try again');
  else say(next, `Next: ${title}`);
  next.dataset.lesson = lesson.name;
  next.dataset.does = lesson.finished ? 'leave' : lesson.stage === 'not ready' ? 'lesson' : 'next';
}

const producedSigns = {ok: ['good', '✓'], sent: ['', '→'], refused: ['bad', '✕'], failed: ['warn', '?']};

function producedItem(row) {
  const [kind, sign] = producedSigns[row.kind];
  const what = row.count > 1 ? `${row.first} +${row.count - 1}` : row.first;
  return h('li', {class: row.kind}, h('span', {class: 'mono'}, what),
    h('span', {class: 'quiet'}, `${row.broker === null ? 'nobody' : `broker ${row.broker}`}, acks=${row.acks}`), badge(kind, sign, row.text));
}

const eventKinds = {
  control: ['', '▸'], leader: ['info', '★'], isr: ['good', '◉'], 'high watermark': ['good', '≈'],
  fenced: ['warn', '⊘'], truncated: ['bad', '✂'], refused: ['bad', '✕'],
};

function eventItem(row) {
  const [kind, sign] = eventKinds[row.kind];
  const minutes = Math.floor(row.seconds / 60), seconds = String(row.seconds % 60).padStart(2, '0');
  return h('li', null, h('span', {class: 'number'}, `${minutes}:${seconds}`),
    h('span', null, badge(kind, sign, row.kind), row.text),
    row.rule ? h('span', {class: 'rule'}, row.rule) : null);
}

function draw(rows) {
  const partition = rows.get('partition'), settings = rows.get('settings');
  if (!partition || !settings) return;
  const links = rows.get('links');
  const brokers = rowsOf(rows, 'broker/').map(([, row]) => row);
  const last = Math.max(...brokers.map(broker => broker.log_end_offset || 0));
  say(byId('topic'), `${partition.topic}-0`);
  keyed(byId('summary'), [[0, partition]], row => h('span', {class: 'facts'}, summary(row)));
  for (const broker of brokers) drawLane(broker, links, last);
  drawLesson(rows.get('lesson'));
  const produced = rowsOf(rows, 'produced/').reverse().slice(0, 12);
  byId('no-produced').hidden = produced.length > 0;
  keyed(byId('produced'), produced, producedItem);
  keyed(byId('events'), rowsOf(rows, 'event/').reverse().slice(0, 80), eventItem);
  drawControls(settings, links);
}
