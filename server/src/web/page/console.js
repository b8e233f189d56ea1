// The console: tables over the rows that the broker sends.

const shown = {topic: '', skip: 0, internal: false};
let stop = () => {};

function watch() {
  stop();
  const query = new URLSearchParams({topic: shown.topic, skip: shown.skip, internal: shown.internal ? 1 : 0});
  stop = follow(`/events?${query}`, draw, showState);
}

const cell = (label, content, kind) => h('td', {'data-label': label, class: kind}, content);
const rowHead = (...content) => h('th', {scope: 'row'}, ...content);

function tile(label, value, note, kind) {
  return h('div', {class: 'tile'}, h('dt', null, label),
    h('dd', {class: kind || null}, value, note ? h('small', null, ` ${note}`) : null));
}

function tiles(cluster, brokers) {
  const active = brokers.filter(broker => broker.state === 'active').length;
  const trouble = (count, label) => [label, count
    ? [badge(label === 'Offline' ? 'bad' : 'warn', '▲', numberText(count))]
    : [badge('good', '✓', 'none')]];
  return [
    tile('Brokers active', numberText(active), `of ${brokers.length}`),
    tile('Active controller', cluster.controller === null ? 'none' : String(cluster.controller), `epoch ${cluster.controller_epoch}`),
    tile('Topics', numberText(cluster.topics)),
    tile('Partitions', numberText(cluster.partitions)),
    tile(...trouble(cluster.under_replicated, 'Under-replicated')),
    tile(...trouble(cluster.offline, 'Offline')),
  ];
}

function replicaItem(replica, leader) {
  const leads = replica.id === leader;
  const state = leads ? badge('info', '★', 'leader') : replica.in_sync ? badge('good', '✓', 'in sync') : badge('warn', '▲', 'out of sync');
  const offsets = replica.error
    ? h('span', {class: 'offsets'}, replica.error)
    : h('span', {class: 'offsets'},
      h('span', null, h('abbr', {title: 'log end offset'}, 'LEO'), ' ', h('b', null, numberText(replica.log_end_offset))),
      h('span', null, h('abbr', {title: 'high watermark'}, 'HW'), ' ', h('b', null, numberText(replica.high_watermark))));
  return h('li', {class: `replica${leads ? ' leads' : ''}${replica.in_sync ? '' : ' out'}`},
    h('strong', null, `Broker ${replica.id} `, state), offsets);
}

function partitionRow(row) {
  return h('tr', null,
    rowHead(`${row.topic}-${row.partition}`),
    cell('Leader', row.leader === null ? badge('bad', '✕', 'none') : `broker ${row.leader}`),
    cell('Leader epoch', h('span', {class: 'number'}, numberText(row.leader_epoch))),
    cell('ISR', h('div', null,
      h('span', {class: 'number'}, row.isr.join(', ') || 'empty'),
      row.out_of_sync.length ? h('div', {class: 'small quiet'}, `out of sync: ${row.out_of_sync.join(', ')}`) : null,
      row.eligible_leader_replicas.length ? h('div', {class: 'small quiet'}, `eligible to lead: ${row.eligible_leader_replicas.join(', ')}`) : null)),
    cell('Replicas', h('ul', {class: 'replicas'}, row.replicas.map(replica => replicaItem(replica, row.leader))), 'wide'));
}

const brokerStates = {
  active: () => badge('good', '✓', 'active'),
  fenced: () => badge('bad', '✕', 'fenced'),
  'shutting down': () => badge('warn', '▲', 'shutting down'),
};

function brokerRow(row) {
  return h('tr', null,
    rowHead(`Broker ${row.id}`, row.rack ? h('span', {class: 'small quiet'}, ` rack ${row.rack}`) : null),
    cell('State', row.state === 'active' && row.no_answer
      ? h('span', null, badge('warn', '▲', 'no answer'), h('div', {class: 'small quiet'}, row.no_answer))
      : brokerStates[row.state]()),
    cell('Address', h('span', {class: 'mono'}, row.address || '–')),
    cell('Leads', h('span', {class: 'number'}, numberText(row.leads))),
    cell('Replicas', h('span', {class: 'number'}, numberText(row.replicas))),
    cell('Broker epoch', h('span', {class: 'number'}, numberText(row.broker_epoch))));
}

function controllerRow(row) {
  return h('tr', null,
    rowHead(`Controller ${row.id}`),
    cell('Role', row.active ? badge('info', '★', 'active') : badge('', '', 'standby')),
    cell('Address', h('span', {class: 'mono'}, row.address || '–')));
}

function topicRow(row) {
  const configs = Object.entries(row.configs);
  return h('tr', null,
    rowHead(row.topic),
    cell('Partitions', h('span', {class: 'number'}, numberText(row.partitions))),
    cell('Replicas', h('span', {class: 'number'}, numberText(row.replication_factor))),
    cell('Under-replicated', row.under_replicated ? badge('warn', '▲', numberText(row.under_replicated)) : badge('good', '✓', 'none')),
    cell('Configuration', configs.length
      ? h('div', null, configs.map(([key, value]) => h('div', {class: 'mono small'}, `${key}=${value}`)))
      : h('span', {class: 'quiet'}, 'defaults')));
}

function groupRow(row) {
  const worst = row.partitions.map(p => h('div', {class: 'small'},
    `${p.topic}-${p.partition}: `, h('b', {class: 'number'}, numberText(p.lag)),
    h('span', {class: 'quiet'}, ` (${numberText(p.committed)} of ${numberText(p.end)})`)));
  const more = row.partition_count - row.partitions.length;
  return h('tr', null,
    rowHead(row.group),
    cell('State', badge(row.state === 'Stable' ? 'good' : '', row.state === 'Stable' ? '✓' : '', row.state)),
    cell('Members', h('span', {class: 'number'}, numberText(row.members))),
    cell('Lag', h('span', {class: 'number'}, row.partition_count ? numberText(row.lag) : 'none committed')),
    cell('Partitions', h('div', null, worst, more > 0 ? h('div', {class: 'small quiet'}, `and ${more} more`) : null), 'wide'));
}

function table(rows, prefix, id, make) {
  const entries = rowsOf(rows, prefix);
  keyed(byId(id), entries, make);
  const empty = byId(`no-${id}`);
  if (empty) empty.hidden = entries.length > 0;
  return entries.map(([, row]) => row);
}

function draw(rows) {
  const cluster = rows.get('cluster');
  if (!cluster) return;
  say(byId('about'), `Cluster ${cluster.cluster_id}, seen from node ${cluster.node_id} · Highwater ${cluster.version}`);
  const brokers = table(rows, 'broker/', 'brokers', brokerRow);
  table(rows, 'controller/', 'controllers', controllerRow);
  table(rows, 'partition/', 'partitions', partitionRow);
  table(rows, 'topic/', 'topics', topicRow);
  table(rows, 'group/', 'groups', groupRow);
  keyed(byId('tiles'), tiles(cluster, brokers).map((element, at) => [at, element.outerHTML]),
    (_, at) => tiles(cluster, brokers)[at]);
  say(byId('alarm'), `${cluster.under_replicated} partitions are under-replicated, ${cluster.offline} have no leader.`);
  const last = Math.min(cluster.skip + cluster.page_size, cluster.matching);
  say(byId('range'), cluster.matching > cluster.skip
    ? `${numberText(cluster.skip + 1)}–${numberText(last)} of ${numberText(cluster.matching)}` : `${numberText(cluster.matching)} in all`);
  byId('previous').disabled = cluster.skip === 0;
  byId('next').disabled = last >= cluster.matching;
  shown.page = cluster.page_size;
}

let typing = 0;
byId('topic').addEventListener('input', event => {
  clearTimeout(typing);
  typing = setTimeout(() => { shown.topic = event.target.value.trim(); shown.skip = 0; watch(); }, 250);
});
byId('internal').addEventListener('change', event => { shown.internal = event.target.checked; shown.skip = 0; watch(); });
byId('previous').addEventListener('click', () => { shown.skip = Math.max(0, shown.skip - shown.page); watch(); });
byId('next').addEventListener('click', () => { shown.skip += shown.page; watch(); });
watch();
