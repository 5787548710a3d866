package azure

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"changerelay/deployments/internal/reference"
)

// block returns a resource's own lines.
func block(t *testing.T, kind, name string) string {
	t.Helper()
	_, rest, begins := strings.Cut(reference.Read(t, "deployments/azure/main.tf"), `resource "`+kind+`" "`+name+`" {`)
	text, _, ends := strings.Cut(rest, "\n}\n")
	if !begins || !ends {
		t.Fatalf("main.tf has no resource %s %s", kind, name)
	}
	return text
}

func expect(t *testing.T, text, attribute, value string) {
	t.Helper()
	if !regexp.MustCompile(`(?m)^\s*` + attribute + `\s+= ` + regexp.QuoteMeta(value) + `( #.*)?$`).MatchString(text) {
		t.Errorf("%s: want %s in\n%s", attribute, value, text)
	}
}

func TestAzure_TheEntitiesAreThoseOfTheManifests(t *testing.T) {
	t.Parallel()
	base := reference.Read(t, "deployments/kubernetes/base/kustomization.yaml")
	topic, subscription := block(t, "azurerm_servicebus_topic", "changes"), block(t, "azurerm_servicebus_subscription", "projector")
	for text, setting := range map[string]string{topic: "SERVICEBUS_TOPIC", subscription: "SERVICEBUS_SUBSCRIPTION"} {
		value := regexp.MustCompile(setting + `=(\S+)`).FindStringSubmatch(base)
		if value == nil {
			t.Fatalf("the base sets no %s", setting)
		}
		expect(t, text, "name", `"`+value[1]+`"`)
	}
	expect(t, topic, "partitioning_enabled", "true")
	expect(t, topic, "requires_duplicate_detection", "true")
	expect(t, subscription, "requires_session", "true")
}

func TestAzure_TheRolesAreTheLeastThatAreDocumented(t *testing.T) {
	t.Parallel()
	example, security := reference.Read(t, "deployments/azure/main.tf"), reference.Read(t, "docs/security.md")
	for service, role := range map[string]string{"publisher": "Azure Service Bus Data Sender", "projector": "Azure Service Bus Data Receiver"} {
		if !strings.Contains(example, service+` = { role = "`+role+`"`) || !strings.Contains(security, "| "+service+" | "+role+" |") {
			t.Errorf("%s: want the role %s in main.tf and in docs/security.md", service, role)
		}
		if manifest := reference.Read(t, "deployments/kubernetes/base/"+service+".yaml"); !strings.Contains(manifest, "kind: ServiceAccount\nmetadata:\n  name: "+service+"\n") {
			t.Errorf("%s: want a service account of that name, which the federated credential is for", service)
		}
	}
}

func TestAzure_TheExampleIsFormatted(t *testing.T) {
	t.Parallel()
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("NOT RUN: whether the example is formatted: no terraform here, and Debian has no package of it")
	}
	if out, err := exec.CommandContext(t.Context(), terraform, "fmt", "-check", "-diff", "-no-color", "main.tf").CombinedOutput(); err != nil {
		t.Errorf("terraform fmt: %v\n%s", err, out)
	}
}
