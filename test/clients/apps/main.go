package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	portcullis "portcullis.dev/client"
)

func main() {
	authority, err := os.ReadFile(os.Getenv("PDP_CA"))
	if err != nil {
		log.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	pdp, err := portcullis.Connect(portcullis.Options{
		Addresses: []string{os.Getenv("PDP")},
		TLS:       &tls.Config{RootCAs: trusted},
		Token:     func() (string, error) { return os.Getenv("PDP_TOKEN"), nil },
		Deadline:  5 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	guard := portcullis.NewGuard(pdp, os.Getenv("RESOURCE"))
	say := func(text func(caller portcullis.Caller, r *http.Request) string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text(portcullis.CallerOf(r), r)) })
	}
	http.Handle("GET /invoices/{id}", guard.Allow("viewer", "invoice:{id}", say(func(caller portcullis.Caller, r *http.Request) string {
		return fmt.Sprintf("invoice %s for %s of %s", r.PathValue("id"), caller.Subject.ID, caller.Organization)
	})))
	http.Handle("GET /files/{folder}/{name}", guard.Allow("viewer", "file:{folder}-{name}", say(func(portcullis.Caller, *http.Request) string {
		return "a file"
	})))
	http.Handle("GET /me", guard.SignedIn(say(func(caller portcullis.Caller, _ *http.Request) string {
		return fmt.Sprint(caller.Claims["sub"])
	})))
	http.HandleFunc("GET /many", func(w http.ResponseWriter, r *http.Request) {
		answers := make([]bool, 1_000)
		var asking sync.WaitGroup
		for at := range answers {
			token := r.Header.Get([]string{"Mine", "Other"}[at%2])
			asking.Go(func() {
				allowed, err := pdp.Can(r.Context(), token, "viewer", "invoice:7")
				if err != nil {
					log.Print(err)
				}
				answers[at] = allowed
			})
		}
		asking.Wait()
		count, own := 0, true
		for at, allowed := range answers {
			own = own && allowed == (at%2 == 0)
			if allowed {
				count++
			}
		}
		fmt.Fprintf(w, "%d of %d, each its own: %s", count, len(answers), map[bool]string{true: "True", false: "False"}[own])
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
