package portcullis

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// A Caller sent a request that was allowed. Claims: those of the access token.
type Caller struct {
	Subject      Subject
	Organization string
	Claims       map[string]any
}

// A Guard lets only requests through that may pass; what is unclear is refused.
type Guard struct {
	client   *Client
	resource string
}

// NewGuard: resource is what tokens must name as their audience (RFC 8707). The PDP verifies them, and knows their issuers.
func NewGuard(client *Client, resource string) *Guard { return &Guard{client, resource} }

// Allow asks for a relation on a resource, whose {name} is the path parameter of that name. It panics where two of them touch.
func (g *Guard) Allow(relation, resource string, next http.Handler) http.Handler {
	if strings.Contains(resource, "}{") {
		panic("portcullis: two placeholders side by side do not tell where the first value ends")
	}
	return g.handler(next, func(request *http.Request) ([]Check, error) {
		filled, err := fill(resource, request.PathValue)
		return []Check{{relation, filled}}, err
	})
}

// SignedIn asks for any valid token.
func (g *Guard) SignedIn(next http.Handler) http.Handler {
	return g.handler(next, func(*http.Request) ([]Check, error) { return nil, nil })
}

type callerKey struct{}

// CallerOf panics for a request that no guard allowed.
func CallerOf(request *http.Request) Caller { return request.Context().Value(callerKey{}).(Caller) }

func (g *Guard) handler(next http.Handler, checks func(*http.Request) ([]Check, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		caller, err := g.admit(request, checks)
		if err != nil {
			deny(w, err)
			return
		}
		next.ServeHTTP(w, request.WithContext(context.WithValue(request.Context(), callerKey{}, *caller)))
	})
}

// The code of a refusal.
type refused string

func (r refused) Error() string { return string(r) }

func (g *Guard) admit(request *http.Request, checksOf func(*http.Request) ([]Check, error)) (*Caller, error) {
	token, err := bearer(request.Header.Values("Authorization"))
	if err != nil {
		return nil, err
	}
	claims := claimsOf(token)
	audiences, isList := claims["aud"].([]any)
	if !isList {
		audiences = []any{claims["aud"]}
	}
	// A token that is bound to a key would be good without it: its proof is verified by the sidecar, not here.
	if _, bound := claims["cnf"]; bound || !slices.Contains(audiences, any(g.resource)) {
		return nil, refused("token_invalid")
	}
	checks, err := checksOf(request)
	if err != nil {
		return nil, err
	}
	decision, err := g.client.Decide(request.Context(), token, Question{Permissions: checks})
	if err != nil {
		return nil, err
	}
	if !decision.Active {
		return nil, refused("token_invalid")
	}
	for _, permission := range decision.Permissions {
		if permission.Error != "" {
			return nil, refused(permission.Error)
		}
		if !permission.Allowed {
			return nil, refused("permission_denied")
		}
	}
	return &Caller{decision.Subject, decision.Organization, claims}, nil
}

// RFC 9110 section 11.2: a token68, after one or more spaces.
var credentialsForm = regexp.MustCompile(`^([!#$%&'*+.^_|~0-9A-Za-z` + "`" + `-]+)(?: +([A-Za-z0-9._~+/-]+=*))?`)

func bearer(fields []string) (string, error) {
	if len(fields) == 0 {
		return "", refused("token_missing")
	}
	if len(fields) > 1 {
		return "", refused("request_invalid")
	}
	match := credentialsForm.FindStringSubmatch(fields[0])
	if match == nil || !slices.Contains([]string{"bearer", "dpop"}, strings.ToLower(match[1])) {
		return "", refused("token_missing")
	}
	if strings.TrimRight(fields[0], " ") == match[1] {
		return "", refused("request_invalid")
	}
	if strings.EqualFold(match[1], "dpop") || match[2] == "" || match[0] != fields[0] {
		return "", refused("token_invalid")
	}
	return match[2], nil
}

// claimsOf verifies nothing: they count once the PDP has said that this very token is active. Nil: they cannot be read.
func claimsOf(token string) map[string]any {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	var claims map[string]any
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return nil
	}
	return claims
}

var placeholder = regexp.MustCompile(`\{([^{}]*)\}([^{]?)`)

func fill(template string, valueOf func(string) string) (string, error) {
	var err error
	resource := placeholder.ReplaceAllStringFunc(template, func(found string) string {
		parts := placeholder.FindStringSubmatch(found)
		value, end := valueOf(parts[1]), parts[2]
		// Otherwise two different pairs of values could give the same id for {a}/{b}.
		if value == "" || (end != "" && strings.Contains(value, end)) {
			err = refused("request_invalid")
		}
		return value + end
	})
	return resource, err
}

var answers = map[refused]struct {
	status int
	title  string
}{
	"request_invalid":   {http.StatusBadRequest, "The request is malformed"},
	"token_missing":     {http.StatusUnauthorized, "An access token is required"},
	"token_invalid":     {http.StatusUnauthorized, "The access token is not valid"},
	"permission_denied": {http.StatusForbidden, "The subject does not have this permission"},
}

// deny answers with problem details (RFC 9457).
func deny(w http.ResponseWriter, err error) {
	code := refused("pdp_unavailable")
	var undecided *Error
	if errors.As(err, &undecided) {
		code = refused(undecided.Code)
	}
	errors.As(err, &code)
	answer, known := answers[code]
	if !known {
		answer.status, answer.title = http.StatusServiceUnavailable, "No decision was possible"
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	if code == "token_missing" {
		w.Header().Set("WWW-Authenticate", "Bearer")
	} else if answer.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
	}
	w.WriteHeader(answer.status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"type": "urn:portcullis:problem:" + string(code), "title": answer.title, "code": code, "status": answer.status,
	})
}
