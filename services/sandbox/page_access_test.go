package sandbox_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"changerelay/services/sandbox"
)

const pageAccounts = `{
  "roles": [{"role": "reader", "privileges": [{"resource": {"db": "test", "collection": "things"}, "actions": ["find"]}]}],
  "users": [
    {"user": "root", "pwd": "secret", "roles": [{"role": "root"}]},
    {"user": "reader", "pwd": "secret", "roles": [{"role": "reader"}]},
    {"user": "local", "db": "test", "pwd": "secret", "roles": [{"role": "readWrite", "db": "test"}]}
  ]
}`

// request is one of the page, and what it is to be answered with.
type request struct {
	method, path, body string
	user, password     string
	header             [2]string
	host               string
	want               int
}

func (r request) send(t *testing.T, s *sandbox.Sandbox) (int, http.Header, string) {
	t.Helper()
	made, err := http.NewRequestWithContext(t.Context(), r.method, s.URL()+r.path, strings.NewReader(r.body))
	must(t, err)
	if r.user != "" {
		made.SetBasicAuth(r.user, r.password)
	}
	if r.header[0] != "" {
		made.Header.Set(r.header[0], r.header[1])
	}
	made.Host = r.host
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(made)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, response.Header, string(text)
}

// check sends each request, and wants a reason wherever one is refused.
func check(t *testing.T, s *sandbox.Sandbox, requests map[string]request) {
	t.Helper()
	for name, r := range requests {
		status, header, text := r.send(t, s)
		if status == http.StatusUnauthorized && !strings.HasPrefix(header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: got no challenge with status 401, want one for basic authentication", name)
		}
		if status != r.want || status >= 400 && !strings.Contains(text, `"error": "`) {
			t.Errorf("%s: got status %d and %s, want %d", name, status, text, r.want)
		}
	}
}

const (
	things       = "/documents/test/things"
	others       = "/documents/test/others"
	fault        = `{"kind":"servicebus.delay","path":"changes","delay":"1ns"}`
	toChanges    = "/messages?entity=changes"
	fromObserver = "/messages?entity=" + observer
)

func TestPageAccess_WithAccountsThePageAsksForAUser(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{Accounts: strings.NewReader(pageAccounts)})
	check(t, s, map[string]request{
		"read as nobody":               {method: "GET", path: things, want: 401},
		"write as nobody":              {method: "POST", path: things, body: `{}`, want: 401},
		"read with a wrong password":   {method: "GET", path: things, user: "root", password: "guess", want: 401},
		"read as nobody's user":        {method: "GET", path: things, user: "guess", password: "secret", want: 401},
		"write as root":                {method: "POST", path: things, body: `{}`, user: "root", password: "secret", want: 201},
		"read as reader":               {method: "GET", path: things, user: "reader", password: "secret", want: 200},
		"read what is not granted":     {method: "GET", path: others, user: "reader", password: "secret", want: 403},
		"write as reader":              {method: "POST", path: things, body: `{}`, user: "reader", password: "secret", want: 403},
		"as a user of another db":      {method: "POST", path: things + "?authSource=test", body: `{}`, user: "local", password: "secret", want: 201},
		"as that user of admin":        {method: "POST", path: things, body: `{}`, user: "local", password: "secret", want: 401},
		"users' credentials as reader": {method: "GET", path: "/documents/admin/system.users", user: "reader", password: "secret", want: 403},
		"start a fault as nobody":      {method: "POST", path: "/faults", body: fault, want: 401},
		"end faults as nobody":         {method: "DELETE", path: "/faults", want: 401},
		"change the world as nobody":   {method: "PUT", path: "/world/standard", want: 401},
		"change it to a given one":     {method: "PUT", path: "/world", body: `{}`, want: 401},
		"start a fault as a user":      {method: "POST", path: "/faults", body: fault, user: "reader", password: "secret", want: 201},
		"change the world as a user":   {method: "PUT", path: "/world/loopback", user: "reader", password: "secret", want: 200},
		"look at faults as nobody":     {method: "GET", path: "/faults", want: 200},
		"send, which asks for no key":  {method: "POST", path: toChanges, body: `{"session_id":"a"}`, want: 201},
	})
}

func TestPageAccess_WithKeysThePageAsksForOne(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{CheckSAS: true, SASKeys: []sandbox.SASKey{
		{Name: "in", Secret: "secret", Rights: "Send"}, {Name: "out", Secret: "secret", Rights: "Listen"},
	}})
	const root = "RootManageSharedAccessKey"
	check(t, s, map[string]request{
		"send without a key":          {method: "POST", path: toChanges, body: `{"session_id":"a"}`, want: 401},
		"send with another's secret":  {method: "POST", path: toChanges, body: `{"session_id":"a"}`, user: "in", password: "guess", want: 401},
		"send with a name alone":      {method: "POST", path: toChanges, body: `{"session_id":"a"}`, user: "nobody", want: 401},
		"send with the right":         {method: "POST", path: toChanges, body: `{"session_id":"a"}`, user: "in", password: "secret", want: 201},
		"send with another right":     {method: "POST", path: toChanges, body: `{"session_id":"a"}`, user: "out", password: "secret", want: 403},
		"peek without a key":          {method: "GET", path: fromObserver, want: 401},
		"peek with the right":         {method: "GET", path: fromObserver, user: "out", password: "secret", want: 200},
		"peek with another right":     {method: "GET", path: fromObserver, user: "in", password: "secret", want: 403},
		"sessions without a key":      {method: "GET", path: "/sessions?entity=" + projector, want: 401},
		"sessions with the right":     {method: "GET", path: "/sessions?entity=" + projector, user: "out", password: "secret", want: 200},
		"start a fault without a key": {method: "POST", path: "/faults", body: fault, want: 401},
		"start one with no right":     {method: "POST", path: "/faults", body: fault, user: "in", password: "secret", want: 403},
		"start one who may manage":    {method: "POST", path: "/faults", body: fault, user: root, password: "SAS_KEY_VALUE", want: 201},
		"insert, which asks for none": {method: "POST", path: things, body: `{}`, want: 201},
	})
}

func TestPageAccess_WithBothAUserOrAKeyMayOperate(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{Accounts: strings.NewReader(pageAccounts), CheckSAS: true})
	check(t, s, map[string]request{
		"nobody": {method: "DELETE", path: "/faults", want: 401},
		"a user": {method: "DELETE", path: "/faults", user: "reader", password: "secret", want: 200},
		"a key":  {method: "DELETE", path: "/faults", user: "RootManageSharedAccessKey", password: "SAS_KEY_VALUE", want: 200},
	})
}

// TestPageAccess_APageOfTheWebGetsNothing sends what a browser sends for a page of another
// origin, and for one whose name was pointed at this machine.
func TestPageAccess_APageOfTheWebGetsNothing(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	for _, r := range []request{
		{method: "POST", path: things, body: `{}`},
		{method: "POST", path: toChanges, body: `{"session_id":"a"}`},
		{method: "POST", path: "/faults", body: fault},
		{method: "DELETE", path: "/faults"},
		{method: "PUT", path: "/world/standard"},
		{method: "PUT", path: "/world", body: `{}`},
	} {
		other, rebound := r, r
		other.header, other.want = [2]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden
		rebound.host, rebound.want = "rebound.example:8090", http.StatusMisdirectedRequest
		origin := r
		origin.header, origin.want = [2]string{"Origin", "https://other.example"}, http.StatusForbidden
		check(t, s, map[string]request{r.path + " of another site": other, r.path + " rebound": rebound, r.path + " of another origin": origin})
	}
	check(t, s, map[string]request{
		"look by a rebound name":   {method: "GET", path: things, host: "rebound.example", want: 421},
		"the page itself":          {method: "GET", path: "/", host: "rebound.example", want: 421},
		"by a name ending like it": {method: "GET", path: things, host: "127.0.0.1.rebound.example", want: 421},
		"by localhost":             {method: "GET", path: things, host: "localhost:8090", want: 200},
		"by a container's name":    {method: "GET", path: things, host: "sandbox:8090", want: 200},
		"by an address":            {method: "GET", path: things, host: "[::1]:8090", want: 200},
		"by a name of the cluster": {method: "GET", path: things, host: "sandbox.ns.svc.cluster.local", want: 200},
		"by the host's name":       {method: "GET", path: things, host: "host.docker.internal:8090", want: 200},
	})
	if got := len(lookAt(t, s, nil).Documents) + len(peek(t, s, observer, nil).Messages); got != 0 || s.World().Name != "loopback" {
		t.Errorf("got %d documents and messages, and world %s, want none and loopback", got, s.World().Name)
	}
	_, header, _ := request{method: "GET", path: "/"}.send(t, s)
	if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("got policy %q, want one that lets nothing in but the page's own files", policy)
	}
}

func TestPageAccess_RequestsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	check(t, s, map[string]request{
		"a filter that is no JSON":     {method: "GET", path: things + "?filter=%7B", want: 400},
		"a filter that is an array":    {method: "GET", path: things + "?filter=%5B%5D", want: 400},
		"an operator there is not":     {method: "GET", path: things + `?filter=%7B%22a%22:%7B%22$fly%22:1%7D%7D`, want: 400},
		"two documents":                {method: "POST", path: things, body: `{} {}`, want: 400},
		"no document":                  {method: "POST", path: things, body: ` `, want: 400},
		"a date that is none":          {method: "POST", path: things, body: `{"a": {"$date": true}}`, want: 400},
		"a document that nests deeply": {method: "POST", path: things, body: strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300), want: 400},
		"a body of more than 4 MiB":    {method: "POST", path: things, body: strings.Repeat(" ", 4<<20+1), want: 413},
		"a collection of no database":  {method: "GET", path: "/documents/a$b/c", want: 400},
		"a parameter there is not":     {method: "GET", path: things + "?limti=1", want: 400},
		"more than a page may have":    {method: "GET", path: things + "?limit=201", want: 400},
		"a form there is not":          {method: "GET", path: things + "?form=yaml", want: 400},
		"messages of nothing":          {method: "GET", path: "/messages", want: 400},
		"messages of no queue":         {method: "GET", path: "/messages?entity=none", want: 404},
		"messages of a topic":          {method: "GET", path: toChanges, want: 404},
		"a sequence number that isn't": {method: "GET", path: fromObserver + "&from=first", want: 400},
		"sessions of a queue without":  {method: "GET", path: "/sessions?entity=" + observer, want: 400},
		"a message to a subscription":  {method: "POST", path: fromObserver, body: `{}`, want: 404},
		"a field there is not":         {method: "POST", path: toChanges, body: `{"session":"a"}`, want: 400},
		"two messages":                 {method: "POST", path: toChanges, body: `{"session_id":"a"}{}`, want: 400},
		"two bodies":                   {method: "POST", path: toChanges, body: `{"session_id":"a","body":1,"body_hex":"00"}`, want: 400},
		"hex that is none":             {method: "POST", path: toChanges, body: `{"session_id":"a","body_hex":"0"}`, want: 400},
		"a property that is a list":    {method: "POST", path: toChanges, body: `{"session_id":"a","properties":{"a":[]}}`, want: 400},
		"a number beyond all":          {method: "POST", path: toChanges, body: `{"session_id":"a","properties":{"a":1e999}}`, want: 400},
		"a time to live of a century":  {method: "POST", path: toChanges, body: `{"session_id":"a","time_to_live":"876000h"}`, want: 400},
		"a message that is too large":  {method: "POST", path: toChanges, body: `{"session_id":"a","body":"` + strings.Repeat("x", 300<<10) + `"}`, want: 413},
	})
	if got := len(peek(t, s, observer, nil).Messages); got != 0 {
		t.Errorf("got %d messages, want none of those that were refused", got)
	}
}
