// The playground's controls: each is a call to the playground, which does it on the real brokers.

let noticeTimer = 0;

function notice(text) {
  say(byId('notice'), text);
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => say(byId('notice'), ''), 8000);
}

async function act(action) {
  try {
    const answer = await fetch('/control', {
      method: 'POST', body: JSON.stringify(action), headers: {'X-Playground-Token': token},
    });
    if (!answer.ok) notice((await answer.text()).trim());
  } catch {
    notice('The playground does not answer.');
  }
}

const nodes = [[1, 'broker 1'], [2, 'broker 2'], [3, 'broker 3'], [3001, 'controller']];

function linkRow({from, name, cuts}) {
  return h('tr', null, h('th', {scope: 'row'}, name), nodes.map(([to, toName]) => h('td', null, from === to ? '' :
    h('button', {type: 'button', 'aria-pressed': String(cuts.includes(to)), 'aria-label': `Hold what ${name} sends to ${toName}`,
      onclick: () => act({do: 'cut', from, to, cut: !cuts.includes(to)})}, cuts.includes(to) ? '✂ held' : 'open'))));
}

/** Shows a setting, unless somebody is about to change it. */
function show(id, value) {
  const control = byId(id);
  if (document.activeElement === control && control.matches(':active')) return;
  if (control.type === 'checkbox') control.checked = value;
  else if ([...control.options].some(option => option.value === String(value))) control.value = String(value);
}

function drawControls(settings, links) {
  show('acks', settings.acks === 'all' ? -1 : settings.acks);
  show('rate', settings.rate);
  show('min-isr', settings.min_isr);
  show('unclean', settings.unclean);
  keyed(byId('links'), nodes.map(([from, name]) => [from, {from, name, cuts: links.filter(l => l.cut && l.from === from).map(l => l.to)}]), linkRow);
  say(byId('hint'), `replica.lag.time.max.ms is ${numberText(settings.lag_ms)} here, broker.session.timeout.ms 3,000. `
    + `Other clients may join in: bootstrap.servers=${settings.bootstrap}`);
}

const produce = count => {
  const to = byId('to').value;
  return act({do: 'produce', count, to: to ? Number(to) : null});
};

byId('links-head').append(h('tr', null, h('th', {scope: 'col'}, 'From \\ to'), nodes.map(([, name]) => h('th', {scope: 'col'}, name))));
byId('produce-1').addEventListener('click', () => produce(1));
byId('produce-5').addEventListener('click', () => produce(5));
byId('acks').addEventListener('change', event => act({do: 'acks', acks: Number(event.target.value)}));
byId('rate').addEventListener('change', event => act({do: 'rate', per_second: Number(event.target.value)}));
byId('min-isr').addEventListener('change', event => act({do: 'min-isr', value: Number(event.target.value)}));
byId('unclean').addEventListener('change', event => act({do: 'unclean', on: event.target.checked}));
byId('elect').addEventListener('click', () => act({do: 'elect'}));
byId('heal').addEventListener('click', () => act({do: 'heal'}));
byId('leave').addEventListener('click', () => act({do: 'leave'}));
byId('next').addEventListener('click', event => {
  if (event.target.getAttribute('aria-disabled') === 'true') return;
  const {does, lesson} = event.target.dataset;
  act(does === 'lesson' ? {do: 'lesson', name: lesson} : {do: does});
});
for (const button of document.querySelectorAll('#lessons button')) {
  button.addEventListener('click', () => act({do: 'lesson', name: button.dataset.lesson}));
}
follow(`/events?token=${encodeURIComponent(token)}`, draw, showState);
