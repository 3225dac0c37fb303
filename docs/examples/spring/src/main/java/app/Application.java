// A service behind the sidecar. Whoever gets here may read this invoice; the field says who it is.
// Start: mvn --quiet spring-boot:run
package app;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
@RestController
public class Application {
  public static void main(String[] args) {
    SpringApplication.run(Application.class, "--server.address=127.0.0.1", "--server.port=3000");
  }

  @GetMapping("/invoices/{id}")
  String invoice(@PathVariable String id, @RequestHeader("X-Auth-Subject") String subject) {
    return "invoice " + id + " for " + subject + "\n";
  }
}
