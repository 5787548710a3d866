package app_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"changerelay/services/projector/internal/config"
)

// Both services may get one environment, in which there are variables of other
// programs as well.
func TestConfig_LeavesVariablesOfOthersAlone(t *testing.T) {
	environment(t)
	text, err := os.ReadFile("../../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	others := regexp.MustCompile("(?m)^\\| `([A-Z_]+)`").FindAllStringSubmatch(string(text), -1)
	if len(others) < 50 {
		t.Fatalf("docs/configuration.md names %d settings, want those of both services", len(others))
	}
	for name := range strings.FieldsSeq(`
		AZURE_CLIENT_ID AZURE_TENANT_ID AZURE_CLIENT_SECRET AZURE_FEDERATED_TOKEN_FILE AZURE_AUTHORITY_HOST
		KUBERNETES_SERVICE_HOST PUBLISHER_SERVICE_HOST PUBLISHER_PORT_8080_TCP_ADDR PROJECTOR_PORT
		OTEL_SERVICE_NAME OTEL_RESOURCE_ATTRIBUTES OTEL_LOGS_EXPORTER OTEL_METRICS_EXPORTER OTEL_EXPORTER_OTLP_PROTOCOL
		OTEL_EXPORTER_OTLP_METRICS_ENDPOINT OTEL_EXPORTER_OTLP_LOGS_HEADERS OTEL_EXPORTER_OTLP_TIMEOUT OTEL_TRACES_SAMPLER
		GOMEMLIMIT GOMAXPROCS LOGNAME NODE CODE`) {
		others = append(others, []string{"", name})
	}
	for _, other := range others {
		if os.Getenv(other[1]) == "" {
			t.Setenv(other[1], "x")
		}
	}
	_, _, err = config.Load(t.Context())
	if err != nil && strings.Contains(err.Error(), "is no setting") {
		t.Errorf("got %v, want no other's variable taken for a mistyped one", err)
	}
}
