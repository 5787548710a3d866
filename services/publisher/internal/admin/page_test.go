package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// shown is what the page makes of a status.
type shown struct {
	Said    string `json:"said"`
	Figures string `json:"figures"`
	Class   string `json:"class"`
	Caption string `json:"caption"`
	// Told is how often a screen reader was given something to say in five seconds.
	Told int `json:"told"`
	// Over is by how many pixels the page is wider than a window of 360.
	Over int `json:"over"`
	// Groups are the titles of the tables, as a screen reader is told them.
	Groups string `json:"groups"`
	// Complaint is an error of the page's script.
	Complaint string `json:"complaint"`
}

// frames shows the page once for each status, in a frame as narrow as a telephone whose
// fetch answers with it, and tells what was to be seen after five seconds. {now} in a status is the time of the
// answer, {ticks} the seconds since the first.
const frames = `<!doctype html><body><script>
const page = %s, cases = %s, found = {};
const answers = (status) => "<script>" + "const began = Date.now();" +
  "fetch = async (path) => new Response(path === '/history' ? JSON.stringify(parent.samples) : parent.cases[" + JSON.stringify(status) + "]" +
  ".replaceAll('{now}', new Date().toISOString()).replaceAll('{ticks}', Math.round((Date.now() - began) / 1000)), { headers: { date: new Date().toUTCString() } });" +
  "onerror = (text) => { window.complaint = text; }; onunhandledrejection = (e) => { window.complaint = String(e.reason); };</" + "script>";
window.cases = cases;
window.samples = [0, 1, 2].map((i) => ({ at: Date.now() - 600000 + i * 300000, per_second: 10 * i, behind_seconds: 30, in_flight: 7 }));
for (const name of Object.keys(cases)) {
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.width = 360;
  frame.style.border = 0;
  frame.srcdoc = answers(name) + page;
  frame.onload = () => {
    const told = frame.contentDocument.querySelector("[role=status]");
    let count = 0;
    new MutationObserver(() => count++).observe(told, { childList: true, characterData: true, subtree: true });
    setTimeout(() => {
      const text = (id) => frame.contentDocument.getElementById(id).textContent;
      found[name] = { said: text("said"), figures: text("figures"), caption: text("caption"), told: count,
        over: frame.contentDocument.documentElement.scrollWidth - frame.contentDocument.documentElement.clientWidth,
        groups: [...frame.contentDocument.querySelectorAll("table")].map((one) => one.getAttribute("aria-label")).join(),
        class: frame.contentDocument.getElementById("verdict").className, complaint: frame.contentWindow.complaint ?? "" };
      document.title = "found:" + encodeURIComponent(JSON.stringify(found)) + ":";
    }, 5000);
  };
}
</script></body>`

// look shows the page in Chromium.
func look(t *testing.T, statuses map[string]string) map[string]shown {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("NOT RUN: there is no chromium (apt-get install chromium)")
	}
	text := func(value any) string {
		encoded, err := json.Marshal(value) // escapes <, so that no script ends early
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, frames, text(string(page)), text(statuses))
	}))
	defer server.Close()
	dom, err := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=20000", "--dump-dom", server.URL).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	found := regexp.MustCompile(`found:([^:<]*):`).FindSubmatch(dom)
	if found == nil {
		t.Fatalf("the page was not looked at: %.2000s", dom)
	}
	decoded, err := url.QueryUnescape(strings.ReplaceAll(string(found[1]), "+", "%2B"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]shown
	if err := json.Unmarshal([]byte(decoded), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPage_SaysWhatIsWrongSinceWhenAndWhichCommand gives the page statuses of both services.
func TestPage_SaysWhatIsWrongSinceWhenAndWhichCommand(t *testing.T) {
	t.Parallel()
	old := time.Now().Add(-50 * time.Hour).UTC().Format(time.RFC3339Nano)
	cases := map[string]struct{ status, said, class string }{
		"a leader at work":             {`{"service":"publisher","role":"leader","state":"publishing","ready":true,"term":3,"lag_seconds":2}`, `^Well: it leads in term 3$`, "good"},
		"a standby":                    {`{"service":"publisher","role":"standby","state":"standing by","ready":true,"leader":"p-1"}`, `^Well: it stands by, and p-1 leads$`, "good"},
		"a standby that sees nothing":  {`{"service":"publisher","role":"standby","state":"standing by","ready":true,"leader":"p-1","parked":1,"lease_unread_since":"` + old + `"}`, `^Not well since \d{4}-\d\d-\d\d [\d:]+: the state database does not answer, or takes no writes; who leads is not known\. Look with publisher doctor\.$`, "bad"},
		"a call that failed just now":  {`{"service":"publisher","role":"leader","state":"publishing","ready":true,"term":3,"lease_unread_since":"{now}"}`, `^Well: `, "good"},
		"a lease for two streams":      {`{"service":"publisher","role":"standby","state":"standing by","ready":false,"lease_conflict":"other"}`, `^Not well: its lease is used for other as well\.`, "bad"},
		"a first start of a publisher": {`{"service":"publisher","role":"leader","state":"publishing","ready":true,"term":1,"read":0,"lag_seconds":4.8}`, `^Well: it leads in term 1$`, "good"},
		"PARK_LIMIT":                   {`{"service":"publisher","role":"leader","state":"halted","ready":false,"halted_reason":"too many changes parked","parked":100,"halted_since":"` + old + `"}`, `^Not well since .*: it is halted, and waits for a decision: too many changes parked\. Look with publisher parked list\.$`, "bad"},
		"a halt with a reason":         {`{"service":"publisher","role":"leader","state":"halted","ready":false,"halted_reason":"history lost","halted_since":"` + old + `"}`, `^Not well since .*: it is halted, and waits for a decision: history lost\. Look with publisher status\.$`, "bad"},
		"the source is away":           {`{"service":"publisher","role":"leader","state":"not reading","ready":false,"unread_since":"` + old + `","position":"` + strings.Repeat("6b05594700000001", 20) + `"}`, `^Not well since .*: no change can be read from the source\. Look with publisher doctor\.$`, "bad"},
		"the broker is away":           {`{"service":"publisher","role":"leader","state":"blocked","ready":false,"outage_class":"unreachable","outage_since":"` + old + `"}`, `^Not well since .*: nothing can be sent: unreachable\. Look with publisher doctor\.$`, "bad"},
		"the read database is away":    {`{"service":"projector","state":"waiting for MongoDB","ready":false,"outage_since":"` + old + `"}`, `^Not well since .*: the read database does not answer\. Look with projector doctor\.$`, "bad"},
		"skipped events":               {`{"service":"projector","state":"running","ready":true,"skipped_events":3}`, `^Not well: 3 events skipped\. Look with projector skipped list\.$`, "bad"},
		"a rebuild": {`{"service":"projector","state":"running","ready":true,"sessions":0,"projections":{"orders":{"applied":1,"halts":0},"` + strings.Repeat("long_name_", 20) + `":{"applied":7,"position_at":"` + old + `"}},` +
			`"latest_troubles":[{"time":"` + old + `","level":"warn","message":"` + strings.Repeat("longword", 40) + `","times":2}]}`, `^Well: it is running$`, "good"},
		"a halt":                        {`{"service":"publisher","role":"leader","state":"halted","ready":false,"halted_since":"` + old + `"}`, `^Not well since \d{4}-.*: it is halted, .* Look with publisher status\.$`, "bad"},
		"a parked change":               {`{"service":"publisher","role":"leader","state":"publishing","ready":true,"parked":2,"parked_since":"` + old + `"}`, `^Not well since .*: 2 changes parked\. Look with publisher parked list\.$`, "bad"},
		"a topic that refuses":          {`{"service":"publisher","role":"leader","state":"blocked","ready":false,"parked":2,"outage_class":"refused","outage_since":"` + old + `"}`, `^Not well since .*: nothing can be sent: refused\. Look with publisher doctor\.$`, "bad"},
		"a state database that refuses": {`{"service":"publisher","role":"leader","state":"not saving","ready":true,"unsaved_since":"` + old + `"}`, `^Not well since .*: the state database does not store a checkpoint or a parked change\. Look with publisher doctor\.$`, "bad"},
		"a state of a later release":    {`{"service":"projector","state":"lost","ready":false}`, `^Not well: it is lost, and not ready\.`, "bad"},
		"a first start":                 {`{"service":"projector","state":"starting","ready":false}`, `^Not at work: it is starting$`, ""},
		"a projector at work":           {`{"service":"projector","state":"running","ready":true,"sessions":1}`, `^Well: it is running$`, "good"},
		"a silent projector":            {`{"service":"projector","state":"cannot say that it lives","ready":false}`, `^Not well: it cannot write to the read database that it lives, `, "bad"},
		"a subscription that is away":   {`{"service":"projector","state":"waiting for Service Bus","ready":false,"halted_aggregates":1,"outage_since":"` + old + `"}`, `^Not well since .*: the subscription does not answer\. Look with projector doctor\.$`, "bad"},
		"a halted aggregate":            {`{"service":"projector","state":"running","ready":true,"halted_aggregates":1,"halted_since":"` + old + `"}`, `^Not well since .*: 1 aggregate halted\. Look with projector parked list\.$`, "bad"},
		"a collection that was emptied": {`{"service":"projector","state":"running","ready":true,"emptied_collections":["orders"]}`, `^Not well: 1 read collection emptied, `, "bad"},
		"an older copy of the database": {`{"service":"projector","state":"running","ready":true,"read_database_went_back":1}`, `^Not well: the read database was put back `, "bad"},
		"aggregates that lack events":   {`{"service":"projector","state":"running","ready":true,"incomplete_aggregates":4}`, `^Not well: 4 aggregates incomplete\. Look with projector incomplete list\.$`, "bad"},
		"partitions, one of them ill": {`{"service":"publisher","role":"leader","state":"publishing","streams":[{"role":"leader","state":"publishing","ready":true,"stream":"e-0","parked":1},` +
			`{"role":"leader","state":"not reading","ready":true,"stream":"e-1","unread_since":"` + old + `"}]}`, `^Not well since .*: no change can be read from the source \(e-1\)\.`, "bad"},
	}
	statuses := map[string]string{}
	for name, one := range cases {
		statuses[name] = one.status
	}
	all := look(t, statuses)
	if got, want := all["a rebuild"].Groups, "Sessions,Projections,Projection orders,Projection "+strings.Repeat("long_name_", 20)+",Process"; got != want {
		t.Errorf("got the groups %s, want %s", got, want)
	}
	if got := all["a first start of a publisher"].Figures; got != ", and has read no change yet." {
		t.Errorf("got %q of a stream without a change, want no figure of it", got)
	}
	if got := all["a halt"].Figures; got != " It has been so for 2 days." {
		t.Errorf("got %q of a halt 50 hours ago", got)
	}
	for name, one := range cases {
		got := all[name]
		if !regexp.MustCompile(one.said).MatchString(got.Said) || got.Class != one.class || got.Complaint != "" {
			t.Errorf("%s: got %+v, want %q with class %q", name, got, one.said, one.class)
		}
		if got.Over > 0 {
			t.Errorf("%s: got a page %d px wider than a window of 360, want it to fit", name, got.Over)
		}
	}
}

// TestPage_TellsOnlyWhatIsNewAndDrawsTheMinutesBefore has a lag that is another with each
// look, beside samples of the time before the page was opened.
func TestPage_TellsOnlyWhatIsNewAndDrawsTheMinutesBefore(t *testing.T) {
	t.Parallel()
	got := look(t, map[string]string{"leader": `{"service":"publisher","role":"leader","state":"publishing","ready":true,"term":1,"lag_seconds":{ticks}}`})["leader"]
	if got.Told > 1 || !regexp.MustCompile(`^, at most [2-9](\.\d)? s behind the source\.$`).MatchString(got.Figures) {
		t.Errorf("got %+v, want figures that go on beside a sentence that is told once", got)
	}
	if want := "the last 10 min: up to 20 events/s (solid), up to 30 s behind (dashed), up to 7 in flight (dotted)"; got.Caption != want {
		t.Errorf("got %q, want %q", got.Caption, want)
	}
}
