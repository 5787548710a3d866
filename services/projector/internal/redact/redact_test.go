package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestRedactor_FindsASecretInEveryForm(t *testing.T) {
	t.Parallel()
	uri := "mongodb://user:ca%40nary%2f@one.example:27017,two.example:27017/?replicaSet=rs0&tls=true"
	connection := "Endpoint=sb://ns.example/;SharedAccessKeyName=root;sharedaccesskey=c4n+ry/key==;EntityPath=orders"
	signature := "Endpoint=sb://ns.example/;SharedAccessSignature=SharedAccessSignature sr=x&sig=c4n%2Fsig"
	r := New(uri, connection, signature, `quo"ted<canary`, "")
	for name, text := range map[string]string{
		"the whole URI":              "dial " + uri + ": refused",
		"the password":               "password ca@nary/ is wrong",
		"the password as it stands":  "userinfo ca%40nary%2f@one",
		"the password, escaped":      "userinfo ca%40nary%2F@one",
		"the connection string":      connection,
		"the key":                    "key c4n+ry/key== is wrong",
		"the key, escaped":           "sig=c4n%2Bry%2Fkey%3D%3D",
		"the key, in lower case":     "sig=c4n%2bry%2fkey%3d%3d",
		"the signature":              "token SharedAccessSignature sr=x&sig=c4n%2Fsig",
		"in JSON that is safe HTML":  `{"error":"SharedAccessSignature sr=x\u0026sig=c4n%2Fsig"}`,
		"in JSON":                    `{"error":"quo\"ted<canary"}`,
		"in JSON inside JSON":        `{"error":"{\"error\":\"quo\\\"ted<canary\"}"}`,
		"quoted by Go":               fmt.Sprintf("%q", `quo"ted<canary`),
		"quoted by Go, then in JSON": marshalled(t, fmt.Sprintf("%q", `quo"ted<canary`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.Text(text)
			for _, canary := range []string{"ca@nary", "ca%40nary", "c4n+ry", "c4n%2B", "c4n%2b", "c4n%2Fsig", "canary"} {
				if strings.Contains(got, canary) {
					t.Errorf("%q became %q", text, got)
				}
			}
			var written bytes.Buffer
			if n, err := fmt.Fprint(r.Writer(&written), text); err != nil || n != len(text) || written.String() != got {
				t.Errorf("Writer wrote %q, %d, %v, want %q, %d", written.String(), n, err, got, len(text))
			}
		})
	}
}

func marshalled(t *testing.T, text string) string {
	t.Helper()
	line, err := json.Marshal(map[string]string{"error": text})
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestRedactor_FindsAPasswordThatIsNotEscaped(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"mongodb://user:can/ar@y%zz@db.example:27017/x", "mongodb://user:can%2Far@y%zz@db.example/?appName=a@b"} {
		secret, _, _ := strings.Cut(strings.TrimPrefix(uri, "mongodb://user:"), "@db")
		if got := New(uri).Text("login with " + secret + " fails"); got != "login with <redacted> fails" {
			t.Errorf("%s: got %q", uri, got)
		}
	}
}

func TestRedactor_LeavesWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	const text = "connection to db.example:27017 refused"
	for _, r := range []*Redactor{{}, New(), New("", "mongodb://db.example:27017/x"), New("mongodb://db.example:27017/?appName=a@b")} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
